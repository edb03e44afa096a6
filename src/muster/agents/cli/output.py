"""What a CLI agent writes: the parts of its answer, the tools that it used, and its text for people."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.agents.cli.dialect import AnswerPaths
from muster.agents.local import MAX_CALLS, MAX_NAME, MAX_RESULT, MAX_SESSION, TOO_MANY, kept_arguments
from muster.agents.payload import count_of, microdollars_of
from muster.agents.usage import OWN_LIMITS
from muster.domain.call import ToolCall, Usage
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.domain.money import Microdollars
from muster.text.json_documents import readable
from muster.text.json_paths import JsonPath


@dataclass(slots=True)
class _Use:
    name: str
    arguments: Mapping[str, Json]
    result: str | None = None
    failed: bool = False


@dataclass(slots=True)
class ToolLog:
    """The uses of tools in order; several may be told of in one line."""

    places: AnswerPaths
    uses: dict[str, _Use] = field(default_factory=dict)
    open: dict[str, _Use] = field(default_factory=dict)  # those that have not ended

    @property
    def at(self) -> str | None:
        """The tool that is in use: the last that was begun and has not ended."""
        return next((use.name for use in reversed(self.open.values())), None)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All uses."""
        return tuple(
            ToolCall(id=id_, name=use.name, arguments=use.arguments, result=use.result, failed=use.failed)
            for id_, use in self.uses.items()
        )

    def take(self, line: Any) -> None:
        """Read what a line tells of tools."""
        if self.places.tool_done is None:  # then the next line is the only sign that a tool is done
            self.open.clear()
        self._begin(line)
        self._end(line)
        for id_ in _all(self.places.tool_failed, line):
            if (failed := self.uses.get(_id(id_))) is not None:
                failed.failed = True

    def _begin(self, line: Json) -> None:
        names = _all(self.places.tool_name, line)
        ids = _beside(names, _all(self.places.tool_id, line))
        arguments = _beside(names, _all(self.places.tool_arguments, line))
        for name, id_, given in zip(names, ids, arguments, strict=True):
            known = None if id_ is None else self.uses.get(_id(id_))
            if known is None:
                self._add(id_, _Use(shown(name)[:MAX_NAME], kept_arguments(_mapping(given))))
            elif given is not None:  # told of again, with more
                known.arguments = kept_arguments(_mapping(given))

    def _add(self, id_: Json, use: _Use) -> None:
        if len(self.uses) >= MAX_CALLS:
            raise BadOutput(TOO_MANY)
        name = f"call_{len(self.uses) + 1}" if id_ is None else _id(id_)
        self.uses[name] = self.open[name] = use

    def _end(self, line: Json) -> None:
        ids = _all(self.places.tool_done, line)
        results = _beside(ids, _all(self.places.tool_result, line))
        for id_, result in zip(ids, results, strict=True):
            use = self.uses.get(_id(id_))
            if use is not None:
                self.open.pop(_id(id_), None)
                use.result = None if result is None else shown(result)[:MAX_RESULT]


def _all(path: JsonPath | None, line: Json) -> list[Json]:
    return [] if path is None else path.all(line)


def _id(value: Json) -> str:
    return str(value)[:MAX_NAME]


def _beside(first: list[Json], second: list[Json]) -> list[Json]:
    """Return one value for each of the first; values that do not come in pairs belong to nobody."""
    return second if len(second) == len(first) else [None] * len(first)


def _mapping(arguments: Json) -> Mapping[str, Json]:
    """Return arguments as an object; some agents write it as a text, and some have one argument only."""
    if isinstance(arguments, str):
        try:
            read = json.loads(arguments)
        except (ValueError, RecursionError):
            read = None
        arguments = read if isinstance(read, dict) else {"input": arguments}
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else {"input": arguments}


_SAMPLE = 200


def shown(value: Json) -> str:
    """Return a value as text: a text as it is, the texts of its blocks, or else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(each, dict) and "text" in each for each in value):
        return "".join(str(each["text"]) for each in value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deep to be shown)"


def sample_of(data: bytes) -> str:
    """Return the beginning of an output, for messages."""
    return readable(data).strip()[:_SAMPLE]


_MAX_ERROR = 2_000


@dataclass(slots=True)
class CliOutput:
    """The parts of an answer; of each the last that was told counts, whatever line it stood in."""

    places: AnswerPaths
    tools: ToolLog = field(init=False)
    answer: Json = None
    cost: Microdollars | None = None
    session: str = ""
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    permission: str | None = None  # the tool that it wants to use; empty: one that it does not name
    permission_input: Mapping[str, Json] | None = None  # what it wants to use that tool with
    ended: bool = False  # the last line was there
    taken: list[str] = field(default_factory=list)  # ids of messages that it has taken in; emptied by the listener
    limited: bool = False  # it failed at a limit of its own, such as the number of turns

    def __post_init__(self) -> None:
        self.tools = ToolLog(self.places)

    @property
    def over(self) -> bool:
        """Return whether there is nothing more to wait for."""
        return self.ended or self.error is not None or self.permission is not None

    @property
    def whole(self) -> bool:
        """Return whether there is an answer, and the last line, if one was promised."""
        return self.answer is not None and (self.ended or self.places.ends is None)

    def take(self, said: Any) -> str:
        """Read one object, and give the text that it adds."""
        places = self.places
        self.answer = _joined(_all_found(places.answer, said), self.answer)
        self.session = shown(_last(places.session, said, self.session))[:MAX_SESSION]
        self._count(said)
        self.tools.take(said)
        self.ended = self.ended or bool(_all_found(places.ends, said))
        self.error = self._failure(_last(places.error, said, None))
        self.limited = self.error is not None and isinstance(said, dict) and said.get("subtype") in OWN_LIMITS
        self.taken += [id_ for id_ in _all_found(places.message_taken, said) if isinstance(id_, str)]
        asked = _last(places.permission, said, None)
        if asked is not None:
            given = _last(places.permission_input, said, None)
            self.ask(shown(asked)[:MAX_NAME], None if given is None else _mapping(given))
        return "".join(text for text in _all_found(places.delta, said) if isinstance(text, str))

    def ask(self, tool: str, given: Mapping[str, Json] | None) -> None:
        """Note that it asks for permission to use a tool."""
        self.permission, self.permission_input = tool, None if given is None else kept_arguments(given)

    def _count(self, said: Json) -> None:
        told = [value for value in _all_found(self.places.cost_usd, said) if value is not None]
        self.cost = microdollars_of(*told) if told else self.cost  # not known, when the last one is not an amount
        turns = count_of(*_all_found(self.places.turns, said))
        self.turns = self.turns if turns is None else turns
        sent = count_of(*_all_found(self.places.input_tokens, said))
        written = count_of(*_all_found(self.places.output_tokens, said))
        if sent is not None or written is not None:
            self.usage = Usage(input=sent or 0, output=written or 0)

    def _failure(self, error: Json) -> str | None:
        """Return the words for a failure; an agent that says no more than that it failed has them in its answer."""
        if not error:
            return self.error
        told = self.answer if error is True and self.answer else error
        return shown(told)[:_MAX_ERROR]


def _all_found(path: JsonPath | None, said: Json) -> list[Json]:
    return [] if path is None else path.all(said)


def _joined(parts: list[Any], before: Any) -> Any:
    """Return the texts of one answer as one; of other values the last counts."""
    there = [part for part in parts if part is not None]
    if len(there) > 1 and all(isinstance(part, str) for part in there):
        return "".join(there)
    return there[-1] if there else before


def _last(path: JsonPath | None, said: Json, before: Json) -> Json:
    """Return the last value that a path finds and that is not null, else the one from before."""
    return next((value for value in reversed(_all_found(path, said)) if value is not None), before)
