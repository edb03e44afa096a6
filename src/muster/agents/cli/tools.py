"""The tools that a CLI agent uses by itself, as its lines tell of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.agents.cli.dialect import Places
from muster.agents.cli.showing import shown
from muster.agents.tool_limits import MOST_CALLS, MOST_NAME, MOST_RESULT, TOO_MANY, kept_arguments
from muster.domain.call import ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.shapes.paths import JsonPath


@dataclass(slots=True)
class _Use:
    name: str
    arguments: Mapping[str, Json]
    result: str | None = None
    failed: bool = False


@dataclass(slots=True)
class ToolLog:
    """The uses of tools in order; several may be told of in one line."""

    places: Places
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

    def take(self, line: Json) -> None:
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
                self._add(id_, _Use(shown(name)[:MOST_NAME], kept_arguments(_mapping(given))))
            elif given is not None:  # told of again, with more
                known.arguments = kept_arguments(_mapping(given))

    def _add(self, id_: Json, use: _Use) -> None:
        if len(self.uses) >= MOST_CALLS:
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
                use.result = None if result is None else shown(result)[:MOST_RESULT]


def _all(path: JsonPath | None, line: Json) -> list[Json]:
    return [] if path is None else path.all(line)


def _id(value: Json) -> str:
    return str(value)[:MOST_NAME]


def _beside(first: list[Json], second: list[Json]) -> list[Json]:
    """Give one value for each of the first; values that do not come in pairs belong to nobody."""
    return second if len(second) == len(first) else [None] * len(first)


def _mapping(arguments: Json) -> Mapping[str, Json]:
    """Give arguments as an object; some agents write it as a text, and some have one argument only."""
    if isinstance(arguments, str):
        try:
            read = json.loads(arguments)
        except (ValueError, RecursionError):
            read = None
        arguments = read if isinstance(read, dict) else {"input": arguments}
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else {"input": arguments}
