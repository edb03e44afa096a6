"""How one CLI agent is spoken to and understood: its command, and where the parts of its answer are found."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from muster.agents.base import InboxMessage
from muster.agents.cli.questions import NO_QUESTIONS, QuestionPatterns
from muster.domain.canonical import Json
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
    permission_input: JsonPath | None = None
    message_taken: JsonPath | None = None

    @property
    def named(self) -> frozenset[str]:
        """The places that are given."""
        return frozenset(place.name for place in fields(self) if getattr(self, place.name) is not None)


# What stands in one line of many, and what makes sense only beside another.
_TOOLS = {"tool_name", "tool_id", "tool_arguments", "tool_done", "tool_result", "tool_failed"}
IN_LINES = frozenset({"ends", "delta", "permission", "permission_input", "message_taken"} | _TOOLS)
_NEEDS = {
    "tool_id": "tool_name",
    "tool_arguments": "tool_name",
    "tool_done": "tool_id",
    "tool_failed": "tool_id",
    "tool_result": "tool_done",
    "permission_input": "permission",
}
_RESUME = 'resume = ["--resume", "{session}"]'
_ALLOW = 'allow = ["--allow-tool", "{tool}"]'
_MESSAGE = 'write it like message = { type = "user", uuid = "{id}", content = "{message}" }'
_TEMPLATE = re.compile(r"\{(message|id)\}")
_MCP = 'mcp = ["--mcp-config", "{mcp_config}"]'


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One CLI agent's way to be asked and to answer."""

    command: tuple[str, ...]
    resume: tuple[str, ...] = ()  # added to go on with a session
    allow: tuple[str, ...] = ()  # added for each tool that a person has granted
    mcp: tuple[str, ...] = ()  # added when there is an MCP server for it
    model: str | None = None
    output: Output = Output.TEXT
    places: AnswerPaths = AnswerPaths()
    questions: QuestionPatterns = NO_QUESTIONS
    message: Mapping[str, Json] | None = None  # a line on its input that tells it more while it works

    def check(self, agent: str, *, budget: bool) -> None:
        """Refuse a dialect that can never work; `budget` says whether there is a limit that can be told."""
        self.questions.check(agent)
        problem = self._problem(agent, budget=budget)
        if problem is not None:
            message, suggestion = problem
            raise BadConfiguration(f"agent {agent!r}: {message}", suggestions=(suggestion,))

    def _problem(self, agent: str, *, budget: bool) -> tuple[str, str] | None:
        return (
            self._problem_of_command()
            or self._problem_of_values(agent, budget=budget)
            or self._problem_of_places()
            or self._problem_of_messages()
        )

    def _problem_of_command(self) -> tuple[str, str] | None:
        if not self.command or not self.command[0]:
            return "its command is empty", 'set the program: command = ["some-agent", "--json"]'
        if named_in(self.command[:1]):
            return f"its program depends on the request: {self.command[0]}", "use the name of the program"
        if "session" in named_in(self.command):
            return 'its command has "{session}", but not every call has a session', f"put it into {_RESUME}"
        if self.resume and "session" not in named_in(self.resume):
            return 'its resume arguments have no "{session}"', f"write them like {_RESUME}"
        if "tool" in named_in(self.command + self.resume):
            return 'its command has "{tool}", but not every call has a granted tool', f"put it into {_ALLOW}"
        if self.allow and (not self.resume or "tool" not in named_in(self.allow)):
            return 'its allow arguments need "{tool}", and resume', f"write {_ALLOW} and {_RESUME}"
        if "mcp_config" in named_in(self.command + self.resume):
            return 'its command has "{mcp_config}", but not every call has one', f"put it into {_MCP}"
        if self.mcp and "mcp_config" not in named_in(self.mcp):
            return 'its mcp arguments have no "{mcp_config}"', f"write them like {_MCP}"
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

    def _problem_of_messages(self) -> tuple[str, str] | None:
        """A message that nobody knows to have been taken in could be lost, so all of this is needed."""
        if self.message is None:
            return ("message_taken has no effect without message", _MESSAGE) if self.places.message_taken else None
        if self.places.message_taken is None or self.places.ends is None:
            return "message needs message_taken and ends", 'add message_taken = "$.uuid" and ends, or remove message'
        written = json.dumps(self.message)
        if "{message}" not in written or "{id}" not in written:
            return 'its message has no "{message}" or no "{id}"', _MESSAGE
        return None

    def message_line(self, message: InboxMessage) -> bytes:
        """Return the line that tells the agent something while it works."""
        values = {"message": message.text, "id": message.id}
        return json.dumps(_filled(self.message, values)).encode() + b"\n"


def _filled(value: Json, values: Mapping[str, str]) -> Json:
    """Put values into the texts of a template; what is put in is never looked at again."""
    if isinstance(value, str):
        return _TEMPLATE.sub(lambda place: values[place[1]], value)
    if isinstance(value, Mapping):
        return {name: _filled(each, values) for name, each in value.items()}
    return [_filled(each, values) for each in value] if isinstance(value, list | tuple) else value


MAX_ARGUMENT = 131_071  # bytes of one argument; Linux takes no more

_PLACE = re.compile(r"\{(prompt|system|model|session|budget|tool|mcp_config)\}")
# What strangers may have written: an argument must not begin with it where it could be taken for an option.
_DATA = ("prompt", "system", "session", "tool")
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
    options, rest = split_options(command)
    return (*options, *more, *rest)


def split_options(command: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the arguments that may be options, and those from `--` on, which are none."""
    at = command.index(_ENDS_OPTIONS) if _ENDS_OPTIONS in command else len(command)
    return command[:at], command[at:]


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
    if size > MAX_ARGUMENT:
        raise Unfit(
            f"the {names} makes an argument of {size:,} bytes; the system allows at most {MAX_ARGUMENT:,}",
            'remove "{prompt}" from the command: the prompt is then sent to its standard input, of any length',
        )
    first = _PLACE.match(argument)
    if first is not None and first[1] in _DATA and filled.startswith("-") and not after_options:
        raise Unfit(
            f"the {first[1]} begins with '-' and would be taken for an option",
            'put "--" before it, write it like "--prompt={prompt}", or send the prompt to its standard input',
        )
