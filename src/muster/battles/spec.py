"""The spec of a battle as it is stored, and back: strict, since requests and programs of users write them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from muster.battles.order import DEFAULT_SECONDS, MAX_VALIDATORS, BattleFields
from muster.battles.validators import ReplyValidator, ValidatorKind, total_flaws, validator_flaws
from muster.domain.call import says_something
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.media import Media, references
from muster.domain.order import field_flaws
from muster.text import typed
from muster.text.declared_values import read_value
from muster.text.limited.allowance import CpuAllowance

BEGIN = "Begin."
NO_BATTLE = "not a valid spec of a battle"
_CHECK_SECONDS = 10.0  # of CPU, for all validators together


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleSpec(BattleFields):
    """One battle as it is stored: every side is named.

    An empty system prompt is that of the agent; without a goal it goes on to its limit, unless a validator says yes; an
    empty first message is the goal. Without a judge only validators decide; without a confirming one it is asked twice.
    """

    validators: tuple[ReplyValidator, ...] = ()
    people: tuple[str, ...] = ()  # which of the sides are persons
    media: tuple[Media, ...] = ()  # images and documents that belong to the first message
    blind: bool = False  # the counterpart cannot be shown them, and is told what they are

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


def stored(spec: BattleSpec) -> Mapping[str, Any]:
    """Return a spec as it is stored: what is as usual is left out."""
    found = lean(without_data(spec))
    if spec.validators:
        found["validators"] = [lean(one) for one in spec.validators]
    return found


def without_data(spec: BattleSpec) -> BattleSpec:
    """Return a spec whose images and documents are references."""
    return replace(spec, media=references(spec.media)) if spec.media else spec


def read_spec(spec: Any) -> BattleSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    return read_value(spec, BattleSpec, about=NO_BATTLE, rules=battle_flaws)


def known_spec(spec: Json) -> BattleSpec:
    """Read a spec that was checked when it was stored, without checking it again, which may take a while."""
    try:
        return typed.convert(spec, BattleSpec)
    except typed.ValidationError as error:
        raise BadArgument(f"{NO_BATTLE}: {error}") from error


def battle_flaws(spec: BattleSpec) -> Iterator[FieldFlaw]:
    """Yield what is wrong with a battle."""
    for name in ("agent", "counterpart"):
        given = getattr(spec, name)
        if not given.strip() or not given.isprintable():
            yield FieldFlaw(path=name, message=f"is {given!r}, which is not the name of an agent")
    for name in ("system_prompt", "persona", "goal", "user_message"):
        given = getattr(spec, name)
        if given and not says_something(given):
            yield FieldFlaw(path=name, message="is empty", code=FlawCode.OUT_OF_BOUNDS)
    yield from field_flaws(spec)
    if spec.goal and not spec.decides:
        message = "a goal needs a judge or validators, which decide whether it is reached"
        yield FieldFlaw(path="judge", message=message, code=FlawCode.MISSING, by_itself=True)
    if spec.plateau_turns is not None and not spec.judges:
        yield FieldFlaw(path="plateau_turns", message="needs a goal and a judge, whose confidence it is about")
    if len(spec.validators) > MAX_VALIDATORS:
        message = f"there are {len(spec.validators)} validators; the maximum is {MAX_VALIDATORS}"
        yield FieldFlaw(path="validators", message=message, code=FlawCode.OUT_OF_BOUNDS, by_itself=True)
    else:
        for message in total_flaws(spec.validators):
            yield FieldFlaw(path="validators", message=message, by_itself=True)
        yield from _validator_flaws(spec.validators)


def _validator_flaws(validators: Sequence[ReplyValidator]) -> list[FieldFlaw]:
    allowance, flaws = CpuAllowance(_CHECK_SECONDS), list[FieldFlaw]()
    for place, one in enumerate(validators):
        flaws += [
            FieldFlaw(path=f"validators[{place}].{name}", message=message)
            for name, message in validator_flaws(one, allowance)
        ]
        if allowance.left <= 0:
            message = "the validators take too long to check; make them simpler"
            return [FieldFlaw(path="validators", message=message, by_itself=True)]
    return flaws


def lean(value: Any) -> dict[str, Json]:
    """Return a value as JSON without what is as usual."""
    found: dict[str, Json] = {}
    for field in fields(value):
        given = getattr(value, field.name)
        usual = field.default_factory() if field.default_factory is not MISSING else field.default
        if usual is MISSING or given != usual:
            found[field.name] = typed.to_builtins(given)
    return found
