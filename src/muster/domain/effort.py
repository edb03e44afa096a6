"""How much a model is to think before it answers: how a name or a request says so, and what a model takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration


class ModelEffort(StrEnum):
    """How much a model thinks before it answers."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


EFFORTS = tuple(effort.value for effort in ModelEffort)
ADAPTIVE, BETWEEN_TOOLS, OFF, BUDGET = "adaptive", "between_tools", "off", "budget"
THINKING = (ADAPTIVE, BETWEEN_TOOLS, OFF)  # beside a number of tokens, which is a budget
MIN_THINKING = 1024  # tokens of a budget
UP_TO_HIGH = ("low", "medium", "high")  # where models that can be told not to think all the time still listen
EFFORT, THINKS, SHOWS, EXTRA = "effort", "thinking", "thinking_display", "extra"  # the names of the settings
EFFORT_MARK = "+"
# Tokens that thinking may take beside the answer, by effort. They are a bound, and reserved as such; few answers need
# as many.
_ROOM: Mapping[str, int] = {
    "none": 0,
    "minimal": 2_048,
    "low": 4_096,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 65_536,
}


def split_effort(name: str) -> tuple[str, str | None]:
    """Return the name of an agent without the effort behind it, as in `careful+high`, and the effort."""
    agent, mark, effort = name.rpartition(EFFORT_MARK)
    return (agent, effort) if mark and agent and effort in EFFORTS else (name, None)


def with_effort(name: str, effort: str | None) -> str:
    """Return the name of an agent that is asked with an effort; one that names its own keeps it."""
    return name if effort is None or split_effort(name)[1] else f"{name}{EFFORT_MARK}{effort}"


def extra_fields(settings: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return what else the body of a request says."""
    extra = settings.get(EXTRA)
    return extra if isinstance(extra, Mapping) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCapabilities:
    """What a model can be told about its thinking."""

    efforts: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()  # `budget` stands for a number of tokens
    off_at: tuple[str, ...] = EFFORTS  # efforts at which thinking can be off, or between tools only

    def require(self, agent: str, settings: Mapping[str, Json]) -> None:
        """Raise BadConfiguration for a setting that the model does not take, with what it does take."""
        effort, thinking = settings.get(EFFORT), settings.get(THINKS)
        if effort is not None and effort not in self.efforts:
            raise _refused(agent, f"effort {effort!r}", "effort", self.efforts)
        if thinking is None:
            return
        kind = BUDGET if _is_number(thinking) else thinking
        if kind not in self.thinking:
            raise _refused(agent, f"thinking {thinking!r}", "thinking", self.thinking)
        if kind in (OFF, BETWEEN_TOOLS) and (effort or "high") not in self.off_at:
            raise _refused(agent, f"thinking {thinking!r} at effort {effort!r}", "an effort of", self.off_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTraits:
    """How much a model writes: thinking, which counts towards what it may write, and at most."""

    thinks_at: str | None = None  # the effort with which it thinks where nobody says anything; None: it does not
    needs_thinking: bool = False  # an effort alone does not let it think
    most: int | None = None  # tokens that it can write, thinking included; None: not known

    @property
    def reasons(self) -> bool:
        """Return whether it thinks where nobody says anything."""
        return self.thinks_at is not None

    def limit(self, answer: int, settings: Mapping[str, Json]) -> int:
        """Return a limit of tokens that leaves room for an answer of so many after thinking as the settings say."""
        limit = answer + self._room(settings)
        return limit if self.most is None else max(answer, min(limit, self.most))

    def _room(self, settings: Mapping[str, Json]) -> int:
        effort, thinking = settings.get(EFFORT), settings.get(THINKS)
        if isinstance(thinking, int):
            return thinking
        if thinking == OFF or (thinking is None and self.thinks_at is None and (effort is None or self.needs_thinking)):
            return 0
        if thinking == BETWEEN_TOOLS:
            return _ROOM["low"]
        return _ROOM[str(effort or self.thinks_at or "high")]


NO_TRAITS = OutputTraits()


def require_settings(agent: str, settings: Mapping[str, Json]) -> None:
    """Raise BadConfiguration for an effort or a kind of thinking that there is not."""
    effort, thinking = settings.get(EFFORT), settings.get(THINKS)
    if effort is not None and effort not in EFFORTS:
        raise _refused(agent, f"effort {effort!r}", "effort", EFFORTS)
    if thinking is None or thinking in THINKING:
        return
    if not _is_number(thinking) or not isinstance(thinking, int) or thinking < MIN_THINKING:
        raise _refused(agent, f"thinking {thinking!r}", "thinking", (*THINKING, BUDGET))


def require_room(agent: str, settings: Mapping[str, Json], limit: int) -> None:
    """Raise BadConfiguration for a budget of thinking that leaves nothing of the limit to the answer."""
    thinking = settings.get(THINKS)
    if _is_number(thinking) and isinstance(thinking, int) and thinking >= limit:
        raise BadConfiguration(
            f"agent {agent!r} may think {thinking:,} tokens, and write {limit:,} in all: none are left for an answer",
            suggestions=("raise max_tokens above thinking, or leave max_tokens out",),
        )


def require_output(agent: str, limit: int, most: int | None) -> None:
    """Raise BadConfiguration for a limit of tokens above what the model is known to write."""
    if most is not None and limit > most:
        raise BadConfiguration(
            f"agent {agent!r} cannot write {limit:,} tokens: its model writes {most:,} at most, thinking included",
            suggestions=(f"set max_tokens to {most} or less", "or leave it out"),
        )


def _is_number(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refused(agent: str, what: str, name: str, can: tuple[str, ...]) -> BadConfiguration:
    if not can:
        return BadConfiguration(
            f"agent {agent!r} cannot be asked with {what}: its model takes no {name}",
            suggestions=("leave it out", f"or say that it does: [agents.NAME.capabilities] {name} = […]"),
        )
    told = ", ".join(f"a budget of at least {MIN_THINKING} tokens" if one == BUDGET else one for one in can)
    return BadConfiguration(f"agent {agent!r} cannot be asked with {what}", suggestions=(f"it takes {name} {told}",))
