"""A text that is one JSON document and nothing else. It is never searched for: in prose it may be a quotation."""

import json
from collections.abc import Sequence

from muster.domain.canonical import Json
from muster.shapes.json_limits import flaw_of

LONGEST = 4_000_000  # characters
_FENCE = "```"
_SHOWN = 60  # characters of a name that is there twice


class Ambiguous(ValueError):
    """JSON to a lenient reader, but it does not say one thing."""


def decode(text: str) -> Json:
    """Return the value that a text is; raises ValueError, and for a key that is there twice Ambiguous."""
    return json.loads(text, object_pairs_hook=_pairs, parse_constant=_no)


def read_object(text: str, *, fenced: bool = True) -> dict[str, Json] | str:
    """Give the object that a text is, maybe in one fence around the whole; or say why it is none."""
    if len(text) > LONGEST:
        return f"it is longer than {LONGEST:,} characters"
    bare = text.strip().removeprefix("\ufeff")
    try:
        found = decode(_unfenced(bare) if fenced else bare)
    except Ambiguous as error:
        return str(error)
    except RecursionError:
        return "it is nested too deep"
    except ValueError:
        return "it is not one JSON object and nothing else"
    if not isinstance(found, dict):
        return "it is JSON, but no object"
    return flaw_of(found) or found


def _unfenced(text: str) -> str:
    """Give what is in a fence that stands around all of a text; looked for without a pattern, which could hang."""
    first, line_break, rest = text.partition("\n")
    language = first.removeprefix(_FENCE).strip()
    if not first.startswith(_FENCE) or not line_break or not (language.isalnum() or not language):
        return text
    body, last_break, last = rest.rpartition("\n")
    return body if last_break and last.strip() == _FENCE else text


def _pairs(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    """Refuse a name that is there twice: readers differ in which of the two they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Ambiguous(f"an object has the key {twice[:_SHOWN]!r} twice")
    return found


def _no(constant: str) -> Json:
    raise Ambiguous(f"it holds {constant}, which is no JSON")
