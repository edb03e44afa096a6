"""Variants of a test: `make test` takes some of them, `make chaos` all."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(values: Iterable[Any], count: int = 1, *, several: bool = False) -> list[Any]:
    """Return the values for a parametrized test, of which all but the first ones are left to `make chaos`.

    With `several` each of them has a value for each of several parameters.
    """
    return [
        value if number < count else pytest.param(*(value if several else (value,)), marks=pytest.mark.chaos)
        for number, value in enumerate(values)
    ]
