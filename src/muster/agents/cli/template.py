"""Command templates: `{prompt}` and the like are replaced inside each argument, once, and no shell ever sees them."""

import re
from collections.abc import Iterable, Mapping, Sequence

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
    """Give the names that arguments have places for."""
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
            f"the {names} holds a NUL character, which no argument can",
            'take "{prompt}" out of the command: the prompt then goes to its standard input',
        )
    size = len(filled.encode())
    if size > LONGEST:
        raise Unfit(
            f"the {names} makes an argument of {size:,} bytes, and the system takes {LONGEST:,} at most",
            'take "{prompt}" out of the command: the prompt then goes to its standard input, of any length',
        )
    first = _PLACE.match(argument)
    if first is not None and first[1] in _DATA and filled.startswith("-") and not after_options:
        raise Unfit(
            f"the {first[1]} begins with '-' and would be taken for an option",
            'put "--" before it, write it like "--prompt={prompt}", or let the prompt go to its standard input',
        )
