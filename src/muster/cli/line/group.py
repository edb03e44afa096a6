"""Commands by their names, in groups."""

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from muster.cli.line.help import help_of_command, help_of_group, usage_of_command
from muster.cli.line.parameters import Misuse, Parameter, parameters_of, read_before


class CliCommand:
    """A function with a name to type; its first argument is the manner, the rest is what the command takes."""

    def __init__(self, function: Callable[..., int | None], shared: Callable[..., Any]) -> None:
        self.function, self._shared = function, shared

    @property
    def about(self) -> str:
        """Say what it does."""
        return inspect.cleandoc(self.function.__doc__ or "")

    def own(self) -> tuple[Parameter, ...]:
        """Return what this command takes."""
        return parameters_of(list(inspect.signature(self.function).parameters.values())[1:])

    def shared(self) -> tuple[Parameter, ...]:
        """Return what every command takes."""
        return parameters_of(inspect.signature(self._shared).parameters.values())

    def help(self, path: str, width: int | None = None) -> str:
        """Write the help."""
        return help_of_command(path, self.about, (*self.own(), *self.shared()), width)


class Default(CliCommand):
    """What a group does when the words name none of its members; its help is that of the group."""

    def __init__(self, group: "Group", function: Callable[..., int | None], shared: Callable[..., Any]) -> None:
        super().__init__(function, shared)
        self._group = group

    def help(self, path: str, width: int | None = None) -> str:
        """Write the help."""
        return self._group.help(path, width)


class Deferred:
    """A command or a group in a module that is loaded when it is called; `about` is what its own help begins with."""

    def __init__(self, place: str, about: str) -> None:
        self._place, self.about = place, about

    def load(self) -> "Callable[..., int | None] | Group":
        """Return the function or the group."""
        module, _, name = self._place.partition(":")
        found: Callable[..., int | None] | Group = getattr(importlib.import_module(module), name)
        return found


class Group:
    """Commands, and groups of them; `more` takes the options of the group itself and may answer by itself."""

    def __init__(self, about: str, shared: Callable[..., Any], more: Callable[..., int | None] | None = None) -> None:
        self.about, self._shared, self.more = about, shared, more
        self._members: dict[str, CliCommand | Group | Deferred] = {}
        self._default: Default | None = None

    def set_default(self, function: Callable[..., int | None]) -> None:
        """Say what is done when the words name no member."""
        self._default = Default(self, function, self._shared)

    def default_for(self, words: Sequence[str]) -> Default | None:
        """Give what is done by default, if the words are for it: the first that is no shared option names no member."""
        if self._default is None:
            return None
        try:
            _, rest = read_before(words, self.shared())
        except Misuse:  # an option of the default's own
            return self._default
        before = list(words[: len(words) - len(rest)])
        is_member = bool(rest) and rest[0] in self._members and before[-1:] != ["--"]
        return None if is_member else self._default

    def add(self, name: str, member: "Callable[..., int | None] | Group") -> None:
        """Put a command or a group under a name."""
        self._members[name] = member if isinstance(member, Group) else CliCommand(member, self._shared)

    def defer(self, name: str, place: str, about: str) -> None:
        """Put what stands at MODULE:NAME under a name without loading the module."""
        self._members[name] = Deferred(place, about)

    @property
    def names(self) -> Sequence[str]:
        """Return the names of all members."""
        return list(self._members)

    def find(self, name: str, path: str) -> "CliCommand | Group":
        """Return what has this name, or raise Misuse."""
        if name not in self._members:
            raise Misuse(f"there is no command {name!r}", path)
        member = self._members[name]
        if isinstance(member, Deferred):
            self.add(name, member.load())
            return self.find(name, path)
        return member

    def own(self) -> tuple[Parameter, ...]:
        """Return the options of the group itself."""
        return () if self.more is None else parameters_of(list(inspect.signature(self.more).parameters.values())[1:])

    def shared(self) -> tuple[Parameter, ...]:
        """Return what every command takes."""
        return parameters_of(inspect.signature(self._shared).parameters.values())

    def help(self, path: str, width: int | None = None) -> str:
        """Write the help."""
        members = [(name, " ".join(each.about.split())) for name, each in self._members.items()]
        if self._default is None:
            return help_of_group(path, self.about, (*self.shared(), *self.own()), members, width)
        takes = self._default.own()
        usage = usage_of_command(path, takes)
        return help_of_group(path, self.about, (*takes, *self.shared()), members, width, before=usage)
