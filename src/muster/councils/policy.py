"""council.yaml and council.toml: who sits in a council and when it ends; everything wrong is told with its line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from muster.councils.order import (
    DEFAULT_EFFORT,
    DEFAULT_MIN_ROUNDS,
    DEFAULT_QUORUM,
    DEFAULT_ROUNDS,
    CouncilFields,
    MemberFields,
    MemberOrder,
    ScoreScale,
)
from muster.councils.rules.values import CouncilMember
from muster.councils.spec import CouncilSpec, spec_flaws
from muster.domain.effort import with_effort
from muster.domain.order import given_by
from muster.text import forms as v
from muster.text.declared_forms import declared_form
from muster.text.diagnostics import Diagnostics
from muster.text.document_tree import MAX_FLAWS, Flaw, Map, Place, Unreadable, place_of
from muster.text.documents.declared import bad_file, read_tree, require_file, unreadable_flaw
from muster.text.files import shown
from muster.text.forms import Form
from muster.text.words import unknown_keys

NAME = "council.yaml"
MAX_BYTES = 1_000_000
_PLACEHOLDER = "?"  # a policy has no question yet
MODERATOR = "moderator"  # the role of an agent that neither proposes nor evaluates

MemberForm: Any = declared_form(MemberOrder, Form, name="MemberForm")


class MembersForm(Form):
    """What a file has besides the fields of a council."""

    version: v.Version = 1
    agents: list[MemberForm] = Field(min_length=1)


PolicyForm: Any = declared_form(CouncilFields, MembersForm, name="PolicyForm")


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilInspection:
    """What is in a policy, and everything that is wrong with it."""

    file: str
    policy: CouncilSpec | None  # with no question; None when something is wrong
    flaws: tuple[Flaw, ...] = ()


def read_policy(path: Path, *, alone: bool = True) -> CouncilSpec:
    """Read a policy as a spec whose question is still open; raises NotFound, or BadFile with all that is wrong.

    A policy that is not alone may have too few members, since others come after them.
    """
    found = inspect_policy(path, alone=alone)
    if found.policy is None:
        raise bad_file(found.flaws)
    return found.policy


def inspect_policy(path: Path, *, alone: bool = True) -> CouncilInspection:
    """Look through a policy, and return everything that is wrong with it, up to a bound; see `read_policy`."""
    require_file(path, kind="council")
    file = shown(path)
    try:
        tree = read_tree(path, what="a policy", listed="agents")
    except Unreadable as error:
        return CouncilInspection(file=file, policy=None, flaws=(unreadable_flaw(path, error),))
    diagnostics = Diagnostics(file, tree, tree.line)
    policy = _policy(tree, diagnostics, alone=alone)
    flaws = sorted(diagnostics.flaws, key=lambda flaw: flaw.line or 0)[:MAX_FLAWS]
    return CouncilInspection(file=file, policy=None if flaws else policy, flaws=tuple(flaws))


def _policy(tree: Map, diagnostics: Diagnostics, *, alone: bool) -> CouncilSpec | None:
    for place, message in _unknown(tree):
        diagnostics.say(place, message)
    try:
        form = PolicyForm.model_validate(tree)
    except ValidationError as error:
        diagnostics.take(error)
        return None
    numbered = list(enumerate(form.agents))
    places = [place for place, one in numbered if not _is_moderator(one)]
    moderators = [(place, one) for place, one in numbered if _is_moderator(one)]
    for place, message in _moderator_flaws(moderators):
        diagnostics.say(place, message)
    members = tuple(_member(form.agents[place]) for place in places)
    spec = CouncilSpec(
        question=_PLACEHOLDER,
        members=members,
        moderator=_member(moderators[0][1]) if moderators else None,
        **given_by(CouncilFields, form),
    )
    for flaw in spec_flaws(spec, alone=alone):
        diagnostics.say(_in_file(place_of(flaw.path), places), str(replace(flaw, path=flaw.path.rpartition(".")[2])))
    return spec


def _is_moderator(form: Any) -> bool:
    return (form.role or "").strip().casefold() == MODERATOR


def _moderator_flaws(moderators: Sequence[tuple[int, Any]]) -> Iterator[tuple[Place, str]]:
    for place, one in moderators:
        if one.scale not in (None, ScoreScale.UNIT):
            yield ("agents", place, "scale"), "a moderator gives no scores; leave out scale"
    for place, one in moderators[1:]:
        yield ("agents", place, "role"), f"{one.agent!r} is a second moderator; a council has at most one"


def _in_file(place: Place, places: Sequence[int]) -> Place:
    """Return where a member stands in the file, in which the moderator stands among the members."""
    match place:
        case ("agents", int(index), *rest):
            return ("agents", places[index], *rest)
    return place


def _member(form: Any) -> CouncilMember:
    return CouncilMember(name=with_effort(form.agent, form.model_effort), **given_by(MemberFields, form))


def _unknown(tree: Any) -> Iterator[tuple[Place, str]]:
    yield from (((key,), message) for key, message in unknown_keys(tree, tuple(PolicyForm.model_fields)))
    agents = tree.get("agents")
    for place, one in enumerate(agents if isinstance(agents, list) else ()):
        for key, message in unknown_keys(one, tuple(MemberForm.model_fields)):
            yield ("agents", place, key), message


STARTER = """\
# A council: agents that propose answers, score each other's in rounds, and stop when the evidence is sufficient.
#   muster council "Should the cache be shared?" --policy {name}/council.yaml
agents:
  - {{ agent: anthropic/claude-sonnet-5-5, role: architect }}
  - {{ agent: openai/gpt-5, role: skeptic, persona: "You doubt numbers that nobody measured." }}
  - {{ agent: anthropic/claude-haiku-5-5, budget_usd: 0.20 }}
  # - {{ agent: openai/gpt-5-mini, role: moderator }}  # only writes the answer, including dissent
rounds: {rounds}                  # at most
min_rounds: {min_rounds}
effort: {effort:g}                # from 0 to 1: how much evidence is needed to stop early
quorum: {quorum:.2f}               # of the members, in each phase
# timeout_secs: 600        # for all rounds
# synthesis: openai/gpt-5  # instead of a moderator: a member that also writes the answer
# baseline: openai/gpt-5   # also asked alone, for the same cost, to compare
"""


def starter(name: str) -> Mapping[str, str]:
    """Return the files of a folder to begin with, by their paths."""
    return {NAME: _starter_text(name)}


def _starter_text(name: str) -> str:
    return STARTER.format(
        name=name,
        rounds=DEFAULT_ROUNDS,
        min_rounds=DEFAULT_MIN_ROUNDS,
        effort=DEFAULT_EFFORT,
        quorum=DEFAULT_QUORUM,
    )
