"""Templates: text with `{names}` in it, expanded in one pass. A value that is put in is never looked at again."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_SHOWN = 60
_MAX_NAME = 300


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in a template: `steps.plan.first`."""

    name: str


@dataclass(frozen=True, slots=True)
class Template:
    """A text and the names in it, in order."""

    parts: tuple[str | Reference, ...]

    @property
    def names(self) -> Iterator[str]:
        """Yield the names, as often as they stand there."""
        return (part.name for part in self.parts if isinstance(part, Reference))

    @property
    def only(self) -> str | None:
        """Return the name that the template is, when it is nothing else."""
        first = self.parts[0] if len(self.parts) == 1 else None
        return first.name if isinstance(first, Reference) else None

    def expand(self, value_of: Callable[[str], Json]) -> str:
        """Return the text with a value for each name."""
        return "".join(part if isinstance(part, str) else spelled_value(value_of(part.name)) for part in self.parts)


def parse_template(text: str) -> Template:
    """Read a template; raises BadArgument for a brace that is neither doubled nor part of a name."""
    parts: list[str | Reference] = []
    end = 0
    for token in _TOKEN.finditer(text):
        parts.append(text[end : token.start()])
        parts.append(_part(token))
        end = token.end()
    parts.append(text[end:])
    return Template(_joined(parts))


def spelled_value(value: Any) -> str:
    """Return a value as it stands in a text: a text as it is, nothing for null, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _part(token: "re.Match[str]") -> str | Reference:
    if token[0] in ("{{", "}}"):
        return token[0][0]
    if token[1] is None:
        raise BadArgument(f"{token[0]!r} at character {token.start() + 1} belongs to no name; write {token[0] * 2}")
    name = token[1].strip()
    if not name:
        raise BadArgument("{} names nothing; write {{}} for braces in the text")
    if len(name) > _MAX_NAME or not re.fullmatch(r"[\w.\-\[\]]+", name):
        raise BadArgument(f"{token[0][:_SHOWN]!r} is not a name; write {{{{ and }}}} for braces in the text")
    return Reference(name)


def _joined(parts: list[str | Reference]) -> tuple[str | Reference, ...]:
    """Put neighbouring texts together."""
    found: list[str | Reference] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, str) and isinstance(last, str):
            found[-1] = last + part
        elif part != "":
            found.append(part)
    return tuple(found)
