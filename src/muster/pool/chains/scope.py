"""Which names a step can use, and what they stand for in one run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.domain.flaw import nearest
from muster.pool.chains.chain import KnownValues
from muster.pool.chains.extraction import parse_path, value_at

OUTPUT = "output"  # what every step has besides what it extracts
PREVIOUS, ITEM, INDEX, ERROR = "previous_output", "item", "index", "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailableNames:
    """The names that can be used at one place of a chain."""

    steps: Mapping[str, frozenset[str]] = field(default_factory=dict)  # done before, with their variables
    later: frozenset[str] = frozenset()  # steps that are not done by then
    inputs: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()  # names without a dot

    def flaw(self, name: str) -> str | None:
        """Return why a name cannot be used here; None when it can."""
        try:
            head, *rest = (str(step) for step in parse_path(name) or (name,))
        except BadArgument:
            return f"{{{name}}} is not a name{self._known()}"
        if head in self.words:
            return None if head == ITEM or not rest else f"{{{name}}}: {head} has no parts"
        if head == "input":
            return self._input_flaw(name, rest)
        if head == "steps":
            return self._step_flaw(name, rest)
        return f"unknown name {{{name}}}{self._near(name) or self._known()}"

    def _input_flaw(self, name: str, rest: list[str]) -> str | None:
        if rest and rest[0] in self.inputs:
            return None
        declared = f"; declared under inputs: {', '.join(sorted(self.inputs)) or 'none'}"
        return f"unknown input {{{name}}}{self._near(name) or declared}"

    def _step_flaw(self, name: str, rest: list[str]) -> str | None:
        if not rest or rest[0] in self.later:
            done = f"; done by then: {', '.join(self.steps) or 'none'}"
            return f"{{{name}}}: this step is not done by then{done}" if rest else f"{{{name}}} names no step{done}"
        if rest[0] not in self.steps:
            return f"unknown step in {{{name}}}{self._near(name) or self._known()}"
        variables = self.steps[rest[0]]
        if len(rest) > 1 and (rest[1] == OUTPUT or rest[1] in variables):
            return None
        known = ", ".join([OUTPUT, *sorted(variables)])
        return f"unknown variable in {{{name}}}{self._near(name) or f'; step {rest[0]} has {known}'}"

    def _all(self) -> Iterator[str]:
        yield from sorted(self.words)
        yield from (f"input.{name}" for name in sorted(self.inputs))
        for step, variables in self.steps.items():
            yield from (f"steps.{step}.{name}" for name in (OUTPUT, *sorted(variables)))

    def _near(self, name: str) -> str:
        near = nearest(name, self._all())
        return f"; did you mean {{{near}}}?" if near else ""

    def _known(self) -> str:
        found = list(self._all())
        return (
            f"; known here: {', '.join(f'{{{name}}}' for name in found[:20])}" if found else "; no name is known here"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What names stand for, for one try of one item of a step."""

    known: KnownValues
    input: Mapping[str, Json]
    words: Mapping[str, Json] = field(default_factory=dict)  # item, index, error, output

    def value_of(self, name: str) -> Any:
        """Return what a name stands for; null for what a skipped step would have given.

        Raises BadOutput when the value has no such part.
        """
        path = parse_path(name)
        if path[0] in self.words:
            return value_at(self.words[str(path[0])], path[1:])
        if path[0] == PREVIOUS:
            return self.known.previous
        if path[0] == "input":
            return value_at(self.input.get(str(path[1])), path[2:])
        values = self.known.steps.get(str(path[1]))
        return None if values is None else value_at(values, path[2:])

    def with_words(self, **words: Json) -> "Scope":
        """Return the scope with more names."""
        return Scope(known=self.known, input=self.input, words={**self.words, **words})
