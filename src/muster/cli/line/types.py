"""The types of values of parameters: numbers with bounds, amounts, choices and files, and what completes them."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, choice_flaw, type_flaw
from muster.domain.money import from_usd
from muster.domain.order import ValueBounds
from muster.text.words import choice_error

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class FlawedValue(click.BadParameter):
    """A value that does not do: the sentence for who typed it, and the flaw."""

    def __init__(
        self, flaw: FieldFlaw, param: click.Parameter | None, ctx: click.Context | None, words: str = ""
    ) -> None:
        super().__init__(words or str(replace(flaw, path="")), ctx, param)
        self.flaw = flaw


class NumberType(click.ParamType[Any]):
    """A number as people write it: Python reads other digits, underscores, blanks and words as well."""

    name = "number"

    _SPELLINGS = {  # noqa: RUF012 - never changed
        int: ("a whole number", re.compile(r"[+-]?[0-9]+")),
        float: ("a number", re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")),
    }

    def __init__(self, kind: Any, least: float | None, most: float | None, above: float | None = None) -> None:
        self.kind, self.least, self.most, self.above = kind, least, most, above

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail with what it must be."""
        if not isinstance(value, str):
            return value
        noun, spelling = self._SPELLINGS[self.kind]
        try:
            number = self.kind(value)
        except ValueError:  # also of more digits than Python reads
            number = math.inf
        if spelling.fullmatch(value) is None or number == math.inf:
            raise FlawedValue(type_flaw("", noun, value), param, ctx)
        return self.within(number, value, param, ctx)

    def within(self, number: Any, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; raises FlawedValue with the bound that it breaks."""
        if flaw := ValueBounds(min=self.least, max=self.most, above=self.above).flaw(number):
            raise FlawedValue(replace(flaw, given=value), param, ctx)
        return number

    @property
    def bounds(self) -> str:
        """Return the bounds in words."""
        if self.above is not None:
            return f"more than {self.above}" + ("" if self.most is None else f" and at most {self.most}")
        if self.least is not None and self.most is not None:
            return f"{self.least} to {self.most}"
        if self.least is not None:
            return f"at least {self.least}"
        return "" if self.most is None else f"at most {self.most}"


class AmountType(NumberType):
    """An amount in dollars; what it may be is told by the order, in dollars too."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the amount, or fail with what it must be."""
        try:
            from_usd(value)
        except BadArgument as error:
            raise FlawedValue(replace(error.flaws[0], path=""), param, ctx) from error
        return self.within(float(value), value, param, ctx)


class ChoiceType(click.ParamType[str]):
    """One of a few words."""

    name = "choice"

    def __init__(self, values: Iterable[str]) -> None:
        self.values = tuple(map(str, values))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word, or fail with those that it can be."""
        if value in self.values:
            return str(value)
        raise FlawedValue(choice_flaw("", self.values, value), param, ctx, choice_error(self.values, value))


class FilePath(click.ParamType[Path]):
    """A path, which need not exist; completed as the shell completes files."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path."""
        return Path(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave the completion to the shell."""
        return files(ctx, param, incomplete)


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave the completion to the shell, which knows the files."""
    return [CompletionItem(incomplete, type="file")]


def completing(values: Iterable[str]) -> Completer:
    """Return what offers those of some values that begin like what was typed."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(value) for value in values if value.startswith(incomplete)]

    return complete
