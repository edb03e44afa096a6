"""How one CLI agent is spoken to and understood: its command, and where the parts of its answer are found."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from muster.domain.errors import BadConfiguration
from muster.text.json_paths import JsonPath


class Output(StrEnum):
    """What a CLI agent writes to its standard output."""

    TEXT = "text"  # the answer and nothing else
    JSON = "json"  # one object, maybe among other lines
    LINES = "jsonl"  # one object a line, as it works


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPaths:
    """Where the parts of an answer are found; None: it does not tell them."""

    answer: JsonPath | None = None
    cost_usd: JsonPath | None = None
    session: JsonPath | None = None
    turns: JsonPath | None = None
    input_tokens: JsonPath | None = None
    output_tokens: JsonPath | None = None
    error: JsonPath | None = None
    ends: JsonPath | None = None
    delta: JsonPath | None = None
    tool_name: JsonPath | None = None
    tool_id: JsonPath | None = None
    tool_arguments: JsonPath | None = None
    tool_done: JsonPath | None = None
    tool_result: JsonPath | None = None
    tool_failed: JsonPath | None = None
    permission: JsonPath | None = None

    @property
    def named(self) -> frozenset[str]:
        """The places that are given."""
        return frozenset(place.name for place in fields(self) if getattr(self, place.name) is not None)


# What stands in one line of many, and what makes sense only beside another.
_TOOLS = {"tool_name", "tool_id", "tool_arguments", "tool_done", "tool_result", "tool_failed"}
IN_LINES = frozenset({"ends", "delta", "permission"} | _TOOLS)
_NEEDS = {
    "tool_id": "tool_name",
    "tool_arguments": "tool_name",
    "tool_done": "tool_id",
    "tool_failed": "tool_id",
    "tool_result": "tool_done",
}
_RESUME = 'resume = ["--resume", "{session}"]'


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One CLI agent's way to be asked and to answer."""

    command: tuple[str, ...]
    resume: tuple[str, ...] = ()  # added to go on with a session
    model: str | None = None
    output: Output = Output.TEXT
    places: AnswerPaths = AnswerPaths()

    def check(self, agent: str, *, budget: bool) -> None:
        """Refuse a dialect that can never work; `budget` says whether there is a limit that can be told."""
        problem = self._problem(agent, budget=budget)
        if problem is not None:
            message, suggestion = problem
            raise BadConfiguration(f"agent {agent!r}: {message}", suggestions=(suggestion,))

    def _problem(self, agent: str, *, budget: bool) -> tuple[str, str] | None:
        return self._problem_of_command() or self._problem_of_values(agent, budget=budget) or self._problem_of_places()

    def _problem_of_command(self) -> tuple[str, str] | None:
        if not self.command or not self.command[0]:
            return "its command is empty", 'set the program: command = ["some-agent", "--json"]'
        if named_in(self.command[:1]):
            return f"its program depends on the request: {self.command[0]}", "use the name of the program"
        if "session" in named_in(self.command):
            return 'its command has "{session}", but not every call has a session', f"put it into {_RESUME}"
        if self.resume and "session" not in named_in(self.resume):
            return 'its resume arguments have no "{session}"', f"write them like {_RESUME}"
        return None

    def _problem_of_values(self, agent: str, *, budget: bool) -> tuple[str, str] | None:
        used = named_in(self.command + self.resume)
        if "model" in used and not self.model:
            return 'its command has "{model}", but it has no model', f'add model = "…" to [agents.{agent}]'
        if "budget" in used and not budget:
            return (
                'its command has "{budget}", but budget_usd is not set',
                f"add budget_usd = 0.50 to [agents.{agent}]: the maximum cost of one call",
            )
        return None

    def _problem_of_places(self) -> tuple[str, str] | None:
        named = self.places.named
        if self.output is Output.TEXT and named:
            return f"{min(named)} is for answers in JSON, and its output is text", 'add output = "json" or "jsonl"'
        if self.output is Output.JSON and named & IN_LINES:
            return f"{min(named & IN_LINES)} is for JSON lines, and its output is json", 'use output = "jsonl"'
        if self.output is not Output.TEXT and "answer" not in named:
            return f"its output is {self.output}, but answer is not set", 'add answer = "$.result"'
        for place, other in _NEEDS.items():
            if place in named and other not in named:
                return f"{place} has no effect without {other}", f"add {other}, or remove {place}"
        return None


LONGEST = 131_071  # bytes of one argument; Linux takes no more

_PLACE = re.compile(r"\{(prompt|system|model|session|budget)\}")
# What strangers may have written: an argument must not begin with it where it could be taken for an option.
_DATA = ("prompt", "system", "session")
_ENDS_OPTIONS = "--"


class Unfit(Exception):
    """A value cannot be handed over in an argument."""

    def __init__(self, message: str, suggestion: str) -> None:
        super().__init__(message)
        self.message, self.suggestion = message, suggestion


def named_in(arguments: Iterable[str]) -> set[str]:
    """Return the names that arguments have places for."""
    return {place[1] for argument in arguments for place in _PLACE.finditer(argument)}


def join(command: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """Add arguments to a command: at its end, or before the `--` after which nothing is an option."""
    at = command.index(_ENDS_OPTIONS) if _ENDS_OPTIONS in command else len(command)
    return (*command[:at], *more, *command[at:])


def fill(arguments: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Put values into arguments; what is put in is never looked at again."""
    found = []
    after_options = False
    for argument in arguments:
        filled = _PLACE.sub(lambda place: values[place[1]], argument)
        _require_fit(argument, filled, after_options=after_options)
        after_options = after_options or argument == _ENDS_OPTIONS
        found.append(filled)
    return tuple(found)


def _require_fit(argument: str, filled: str, *, after_options: bool) -> None:
    names = " and the ".join(sorted(named_in([argument])))
    if not names:
        return
    if "\0" in filled:
        raise Unfit(
            f"the {names} contains a NUL character, which is not possible in an argument",
            'remove "{prompt}" from the command: the prompt is then sent to its standard input',
        )
    size = len(filled.encode())
    if size > LONGEST:
        raise Unfit(
            f"the {names} makes an argument of {size:,} bytes; the system allows at most {LONGEST:,}",
            'remove "{prompt}" from the command: the prompt is then sent to its standard input, of any length',
        )
    first = _PLACE.match(argument)
    if first is not None and first[1] in _DATA and filled.startswith("-") and not after_options:
        raise Unfit(
            f"the {first[1]} begins with '-' and would be taken for an option",
            'put "--" before it, write it like "--prompt={prompt}", or send the prompt to its standard input',
        )
