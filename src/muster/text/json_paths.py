"""JSONPath (RFC 9535): where in an answer its parts are found. The library behind it is loaded by the first path."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal

from muster.domain.errors import BadConfiguration, BadOutput
from muster.text.limited.process import TooSlow

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery


class Missing(Enum):
    """The one value that says that there is nothing at a place, where JSON may hold null."""

    MISSING = "missing"


MISSING: Final[Literal[Missing.MISSING]] = Missing.MISSING


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A place, or several, in a JSON value."""

    text: str
    query: "JSONPathQuery" = field(repr=False, compare=False)

    def first(self, json: Any) -> Any:
        """Return the first value that is found, or MISSING."""
        with self._following():
            return next((node.value for node in self.query.finditer(json)), MISSING)

    def all(self, json: Any) -> list[Any]:
        """Return all values that are found, in order."""
        with self._following():
            return [node.value for node in self.query.finditer(json)]

    @contextmanager
    def _following(self) -> Iterator[None]:
        """Raise BadOutput for an answer in which the path cannot be followed."""
        library = _library()
        try:
            with library.shared_allowance():
                yield
        except (library.JSONPathError, RecursionError) as error:
            raise BadOutput(
                f"the answer cannot be searched by the JSONPath {self.text}: {error}",
                suggestions=("write the full path: '..' does not work on a deeply nested answer",),
            ) from error
        except TooSlow as error:
            raise BadOutput(f"the answer cannot be searched by the JSONPath {self.text}: {error.message}") from error


def compile_path(text: str, where: str) -> JsonPath:
    """Read a JSONPath; `where` says which setting it stands in: "agents.mine: answer"."""
    library = _library()
    try:
        return JsonPath(text, library.ENVIRONMENT.compile(text))
    except (library.JSONPathError, RecursionError) as error:
        raise BadConfiguration(
            f"{where}: {text!r} is not a JSONPath: {error}",
            suggestions=("write it like $.choices[0].message.content; $ is the whole answer",),
        ) from error


def _library() -> Any:
    from muster.text import json_path_library  # a tenth of the start of a suite, and few have a path

    return json_path_library
