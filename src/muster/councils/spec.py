"""The spec of a council as it is stored, and back: strict, since a program of the user's may write one too."""

from collections import Counter
from collections.abc import Iterator, Mapping
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
from muster.councils.rules.stopping import LEAST_MEMBERS, StopRule
from muster.councils.rules.values import CouncilMember
from muster.domain.call import says_something
from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw
from muster.domain.order import field_flaws
from muster.judging.verdicts import VerdictForm
from muster.text import typed
from muster.text.document_tree import Place
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
    found = _lean(spec)
    found["members"] = [_lean(member) for member in spec.members]
    if spec.moderator is not None:
        found["moderator"] = _lean(spec.moderator)
    return found


def read_spec(spec: Any) -> CouncilSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    if unknown := list(_unknown(spec)):
        raise BadArgument(f"{NO_COUNCIL}: {'; '.join(unknown)}")
    try:
        found = typed.convert(spec, CouncilSpec)
    except typed.ValidationError as error:
        raise BadArgument(f"{NO_COUNCIL}: {error}") from error
    require_council(found)
    return found


def require_council(spec: CouncilSpec) -> None:
    """Raise BadArgument with everything that is wrong with a council."""
    flaws = [FieldFlaw(path=_path(place), message=words, by_itself=True) for place, words in spec_flaws(spec)]
    if flaws:
        raise BadArgument.of(flaws, about=NO_COUNCIL)


def _path(place: Place) -> str:
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in place).removeprefix(".")


def spec_flaws(spec: CouncilSpec, *, alone: bool = True) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong with a council, each with the place of it; one that is not alone gets more members."""
    if not says_something(spec.question):
        yield ("question",), "the question is empty"
    yield from _member_flaws(spec.members, LEAST_MEMBERS if alone else 0)
    yield from _moderator_flaws(spec)
    flaws = list(field_flaws(spec))
    yield from (((flaw.path,), str(flaw)) for flaw in flaws)
    if not any(flaw.path in ("rounds", "min_rounds") for flaw in flaws) and spec.min_rounds > spec.rounds:
        yield ("min_rounds",), f"min_rounds must be from 1 to {spec.rounds}, not {spec.min_rounds}"
    if spec.proposal_schema is not None and (wrong := schema_flaw(spec.proposal_schema)):
        yield ("proposal_schema",), f"proposal_schema is not a JSON Schema: {wrong}"
    if spec.verdict_form is not None and spec.proposal_schema is None:
        yield ("verdict_form",), "verdict_form needs a proposal_schema that asks for the items of a verdict"


def _member_flaws(members: tuple[CouncilMember, ...], least: int) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong with the members: too few, too many, doubles, names and budgets that are none."""
    if not least <= len(members) <= MAX_MEMBERS:
        lacking = f": it needs {least - len(members)} more" if len(members) < least else ""
        number = f"a council has from {LEAST_MEMBERS} to {MAX_MEMBERS} members, not {len(members)}"
        yield ("agents",), number + lacking
    counted = Counter(member.name for member in members)
    for place, member in enumerate(members):
        if not member.name.strip() or not member.name.isprintable():
            yield ("agents", place, "agent"), f"{member.name!r} is not the name of an agent"
        elif member.name.endswith(REPAIR):
            yield (
                ("agents", place, "agent"),
                f"the name {member.name!r} ends in {REPAIR}, which has a meaning of its own",
            )
        elif counted.pop(member.name, 1) > 1:
            yield (
                ("agents", place, "agent"),
                f"agent {member.name!r} is a member more than once; declare it under two names",
            )
        yield from ((("agents", place, flaw.path), str(flaw)) for flaw in field_flaws(member))


def _moderator_flaws(spec: CouncilSpec) -> Iterator[tuple[Place, str]]:
    moderator = spec.moderator
    if moderator is None:
        return
    name = moderator.name
    if any(member.name == name for member in spec.members):
        yield ("agents",), f"agent {name!r} is a member and the moderator, who only writes the answer"
    if spec.synthesis not in (None, name):
        yield (
            ("synthesis",),
            f"the answer is written by the moderator {name!r}, not by {spec.synthesis!r}; leave one of them out",
        )
    yield from ((("moderator", flaw.path), str(flaw)) for flaw in field_flaws(moderator))


def _unknown(given: Any) -> Iterator[str]:
    if not isinstance(given, Mapping):
        yield "must be an object"
        return
    yield from (f"unknown key {str(key)[:100]!r}" for key in given if key not in _names(CouncilSpec))
    members, known = given.get("members"), _names(CouncilMember)
    listed = [("members", one) for one in members] if isinstance(members, list | tuple) else []
    for place, member in (*listed, ("moderator", given.get("moderator"))):
        wrong = [key for key in member if key not in known] if isinstance(member, Mapping) else []
        yield from (f"unknown key {place}.{str(key)[:100]!r}" for key in wrong)


def _names(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)}


def _lean(value: Any) -> dict[str, Json]:
    kept = ((field, getattr(value, field.name)) for field in fields(value))
    return {
        field.name: typed.to_builtins(found)
        for field, found in kept
        if field.default is MISSING or found != field.default
    }
