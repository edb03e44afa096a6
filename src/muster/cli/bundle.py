"""Options that belong together and come to several commands: a command takes them as one value."""

import inspect
from collections.abc import Callable
from typing import Any

from muster.cli.frame import Command
from muster.cli.manner import Manner


def bundle(name: str, make: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give commands the options that `make` takes; its value comes to them as the argument of this name."""
    kind = inspect.Parameter.KEYWORD_ONLY
    options = [option.replace(kind=kind) for option in inspect.signature(make).parameters.values()]

    def decorate(function: Command) -> Command:
        def bundled(manner: Manner, **given: Any) -> int | None:
            value = make(**{option.name: given.pop(option.name) for option in options})
            return function(manner, **{name: value}, **given)

        own = [one for one in inspect.signature(function).parameters.values() if one.name != name]
        bundled.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
        bundled.__doc__ = function.__doc__
        return bundled

    return decorate
