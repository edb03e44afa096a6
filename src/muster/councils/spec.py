"""The spec of a council as it is stored, and back: strict, since a program of the user's may write one too."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from muster.councils.kind import COUNCIL
from muster.councils.order import (
    DEFAULT_EFFORT,
    DEFAULT_MIN_ROUNDS,
    DEFAULT_QUORUM,
    DEFAULT_ROUNDS,
    MAX_MEMBERS,
    CouncilFields,
)
from muster.councils.rules.stopping import MIN_MEMBERS, StopRule
from muster.councils.rules.values import CouncilMember
from muster.domain.call import says_something
from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, FlawCode, shown_value
from muster.domain.media import Media, references
from muster.domain.order import field_flaws
from muster.judging.verdicts import VerdictForm
from muster.text import typed
from muster.text.declared_values import read_value
from muster.text.schemas.json_schema import schema_flaw

WORKLOAD = COUNCIL.workload
NO_COUNCIL = "not a valid spec of a council"
REPAIR = "/repair"  # after the key of a call: the call that asks for a better answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilSpec(CouncilFields):
    """One council: a question, who answers it, and when it ends."""

    question: str
    members: tuple[CouncilMember, ...]
    rounds: int = DEFAULT_ROUNDS
    min_rounds: int = DEFAULT_MIN_ROUNDS
    effort: float = DEFAULT_EFFORT
    quorum: float = DEFAULT_QUORUM
    moderator: CouncilMember | None = None  # only writes the answer; neither proposes nor evaluates
    proposal_schema: JsonObject | None = None  # of proposals whose text is one JSON object; None: any text
    verdict_form: VerdictForm | None = None  # of proposals that are verdicts; their schema asks for a list of `items`
    media: tuple[Media, ...] = ()  # images and documents that belong to the question

    @property
    def rule(self) -> StopRule:
        """When it has argued enough."""
        return StopRule(max_rounds=self.rounds, min_rounds=self.min_rounds, effort=self.effort)

    @property
    def author(self) -> CouncilMember | None:
        """Who writes the answer of the council: the moderator, or the agent that is named for it."""
        if self.moderator is not None or self.synthesis is None:
            return self.moderator
        named = (member for member in self.members if member.name == self.synthesis)
        member = next(named, CouncilMember(name=self.synthesis))
        return replace(member, role="", persona="")  # these are for what it proposes itself

    @property
    def agents(self) -> tuple[str, ...]:
        """Everybody who may be asked, each once."""
        author = () if self.author is None else (self.author.name,)
        others = (*author, *filter(None, (self.baseline,)))
        return tuple(dict.fromkeys((*(member.name for member in self.members), *others)))


def stored(spec: CouncilSpec) -> Any:
    """Return a spec as it is stored: what is as usual is left out."""
    found = _lean(replace(spec, media=references(spec.media)))
    found["members"] = [_lean(member) for member in spec.members]
    if spec.moderator is not None:
        found["moderator"] = _lean(spec.moderator)
    return found


def read_spec(spec: Any) -> CouncilSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    return read_value(spec, CouncilSpec, about=NO_COUNCIL, rules=spec_flaws)


def require_council(spec: CouncilSpec) -> None:
    """Raise BadArgument with everything that is wrong with a council."""
    if flaws := list(spec_flaws(spec)):
        raise BadArgument.of(flaws, about=NO_COUNCIL)


def spec_flaws(spec: CouncilSpec, *, alone: bool = True) -> Iterator[FieldFlaw]:
    """Yield what is wrong with a council; one that is not alone gets more members."""
    if not says_something(spec.question):
        yield FieldFlaw(path="question", message="is empty", code=FlawCode.OUT_OF_BOUNDS)
    yield from _member_flaws(spec.members, MIN_MEMBERS if alone else 0)
    yield from _moderator_flaws(spec)
    flaws = list(field_flaws(spec))
    yield from flaws
    if not any(flaw.path in ("rounds", "min_rounds") for flaw in flaws) and spec.min_rounds > spec.rounds:
        message = f"must be at most {spec.rounds}"
        yield FieldFlaw(
            path="min_rounds", message=message, code=FlawCode.OUT_OF_BOUNDS, given=shown_value(spec.min_rounds)
        )
    if spec.proposal_schema is not None and (wrong := schema_flaw(spec.proposal_schema)):
        yield FieldFlaw(path="proposal_schema", message=f"is not a JSON Schema: {wrong}")
    if spec.verdict_form is not None and spec.proposal_schema is None:
        yield FieldFlaw(path="verdict_form", message="needs a proposal_schema that asks for the items of a verdict")


def _member_flaws(members: tuple[CouncilMember, ...], least: int) -> Iterator[FieldFlaw]:
    """Yield what is wrong with the members: too few, too many, doubles, names and budgets that are none."""
    if not least <= len(members) <= MAX_MEMBERS:
        lacking = f": it needs {least - len(members)} more" if len(members) < least else ""
        number = f"a council has from {MIN_MEMBERS} to {MAX_MEMBERS} members, not {len(members)}"
        yield FieldFlaw(path="agents", message=number + lacking, code=FlawCode.OUT_OF_BOUNDS, by_itself=True)
    counted = Counter(member.name for member in members)
    for place, member in enumerate(members):
        path, wrong = f"agents[{place}]", ""
        if not member.name.strip() or not member.name.isprintable():
            wrong = f"{member.name!r} is not the name of an agent"
        elif member.name.endswith(REPAIR):
            wrong = f"the name {member.name!r} ends in {REPAIR}, which has a meaning of its own"
        elif counted.pop(member.name, 1) > 1:
            wrong = f"agent {member.name!r} is a member more than once; declare it under two names"
        if wrong:
            yield FieldFlaw(path=f"{path}.agent", message=wrong, by_itself=True)
        yield from field_flaws(member, f"{path}.")


def _moderator_flaws(spec: CouncilSpec) -> Iterator[FieldFlaw]:
    moderator = spec.moderator
    if moderator is None:
        return
    name = moderator.name
    if any(member.name == name for member in spec.members):
        message = f"agent {name!r} is a member and the moderator, who only writes the answer"
        yield FieldFlaw(path="agents", message=message, by_itself=True)
    if spec.synthesis not in (None, name):
        message = f"the answer is written by the moderator {name!r}, not by {spec.synthesis!r}; leave one of them out"
        yield FieldFlaw(path="synthesis", message=message, by_itself=True)
    yield from field_flaws(moderator, "moderator.")


def _lean(value: Any) -> dict[str, Json]:
    kept = ((field, getattr(value, field.name)) for field in fields(value))
    return {
        field.name: typed.to_builtins(found)
        for field, found in kept
        if field.default is MISSING or found != field.default
    }
