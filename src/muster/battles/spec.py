"""The spec of a battle as it is stored, and back: strict, since requests and programs of users write them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import islice
from typing import Any

from muster.battles.order import DEFAULT_SECONDS, MAX_VALIDATORS, BattleFields
from muster.battles.validators import ReplyValidator, ValidatorKind, total_flaws, validator_flaws
from muster.domain.call import says_something
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.domain.order import field_flaws
from muster.text import typed
from muster.text.limited.allowance import CpuAllowance

BEGIN = "Begin."
MOST_FLAWS = 5  # unknown keys that are told
_CHECK_SECONDS = 10.0  # of CPU, for all validators together


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleSpec(BattleFields):
    """One battle as it is stored: every side is named.

    An empty system prompt is that of the agent; without a goal it goes on to its limit, unless a validator says yes; an
    empty first message is the goal. Without a judge only validators decide; without a confirming one it is asked twice.
    """

    validators: tuple[ReplyValidator, ...] = ()
    people: tuple[str, ...] = ()  # which of the sides are persons

    @property
    def seconds(self) -> float:
        """Return the time limit."""
        return DEFAULT_SECONDS if self.timeout_secs is None else self.timeout_secs

    @property
    def first_message(self) -> str:
        """Return what the counterpart says first."""
        return self.user_message or self.goal or BEGIN

    @property
    def judges(self) -> tuple[str, ...]:
        """Return the judges that may be asked, each once."""
        if not self.goal or not self.judge:
            return ()
        return tuple(dict.fromkeys((self.judge, self.confirm_judge or self.judge)))

    @property
    def decides(self) -> bool:
        """Return whether anything can decide that the goal is reached."""
        return bool(self.judges or self.validators)

    @property
    def agents(self) -> tuple[str, ...]:
        """Return everybody who may be asked, each once."""
        programs = (one.agent for one in self.validators if one.kind is ValidatorKind.PROGRAM)
        return tuple(dict.fromkeys((self.agent, self.counterpart, *programs, *self.judges)))


def stored(spec: BattleSpec) -> dict[str, Json]:
    """Return a spec as it is stored: what is as usual is left out."""
    found = lean(spec)
    if spec.validators:
        found["validators"] = [lean(one) for one in spec.validators]
    return found


def read_spec(spec: Json) -> BattleSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    flaws = list(islice(unknown_keys(spec, BattleSpec), MOST_FLAWS))
    if not flaws:
        flaws = list(_unknown_in_validators(spec))
    if not flaws:
        try:
            found = typed.convert(spec, BattleSpec)
        except typed.ValidationError as error:
            flaws = [str(error)]
        else:
            flaws = list(battle_flaws(found))
    if flaws:
        raise BadArgument(f"not a valid spec of a battle: {'; '.join(flaws)}")
    return found


def known_spec(spec: Json) -> BattleSpec:
    """Read a spec that was checked when it was stored, without checking it again, which may take a while."""
    try:
        return typed.convert(spec, BattleSpec)
    except typed.ValidationError as error:
        raise BadArgument(f"not a valid spec of a battle: {error}") from error


def battle_flaws(spec: BattleSpec) -> Iterator[str]:
    """Yield what is wrong with a battle."""
    for name in ("agent", "counterpart"):
        given = getattr(spec, name)
        if not given.strip() or not given.isprintable():
            yield f"{name}: {given!r} is not the name of an agent"
    for name in ("system_prompt", "persona", "goal", "user_message"):
        given = getattr(spec, name)
        if given and not says_something(given):
            yield f"{name} is empty"
    yield from map(str, field_flaws(spec))
    if spec.goal and not spec.decides:
        yield "a goal needs a judge or validators, which decide whether it is reached"
    if spec.plateau_turns is not None and not spec.judges:
        yield "plateau_turns needs a goal and a judge, whose confidence it is about"
    if len(spec.validators) > MAX_VALIDATORS:
        yield f"there are {len(spec.validators)} validators; the maximum is {MAX_VALIDATORS}"
    else:
        yield from total_flaws(spec.validators)
        yield from _validator_flaws(spec.validators)


def _validator_flaws(validators: Sequence[ReplyValidator]) -> list[str]:
    allowance, flaws = CpuAllowance(_CHECK_SECONDS), list[str]()
    for place, one in enumerate(validators):
        flaws += [f"validators[{place}]: {flaw}" for flaw in validator_flaws(one, allowance)]
        if allowance.left <= 0:
            return ["the validators take too long to check; make them simpler"]
    return flaws


def unknown_keys(given: Any, kind: Any) -> Iterator[str]:
    """Yield the keys that a spec of a kind does not have."""
    if not isinstance(given, Mapping):
        yield "must be an object"
        return
    known = {field.name for field in fields(kind)}
    yield from (f"unknown key {str(key)[:100]!r}" for key in given if key not in known)


def _unknown_in_validators(given: Mapping[str, Json]) -> Iterator[str]:
    """Yield the first things that no validator has: to look for what is meant by each takes a while."""
    listed = given.get("validators")
    for place, one in enumerate(listed if isinstance(listed, list | tuple) else ()):
        unknown = list(islice(unknown_keys(one, ReplyValidator), MOST_FLAWS)) if isinstance(one, Mapping) else []
        yield from (f"validators[{place}]: {flaw}" for flaw in unknown)
        if unknown:
            return


def lean(value: Any) -> dict[str, Json]:
    """Return a value as JSON without what is as usual."""
    found: dict[str, Json] = {}
    for field in fields(value):
        given = getattr(value, field.name)
        usual = field.default_factory() if field.default_factory is not MISSING else field.default
        if usual is MISSING or given != usual:
            found[field.name] = typed.to_builtins(given)
    return found
