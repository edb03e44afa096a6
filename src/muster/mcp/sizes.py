"""How long answers are: no tool and no resource answers with more than MAX_ANSWER characters of JSON. Pure.

What is too long is cut where it is longest, and every cut names the call that reads the rest. A field of an answer is
named by its JSON Pointer; elements of a list by their own key or name where these differ, since places may shift.
"""

import json
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from muster.domain.errors import BadArgument

MAX_ANSWER = 60_000  # characters of the JSON text
PAGE = 20_000  # characters of a page of one long text
MAX_ROW = 4_000  # characters of one row of many
ENVELOPE = 5_000  # characters of an answer that are left to what stands beside its rows or pages
MIN_CUT = 300  # characters that a text which is cut has: its beginning, and the call that reads the rest
MAX_NAMED = 30  # fields in an error
MIN_CONTAINER = 700  # characters that an object or a list has
MAX_FIELD = 100  # characters of the name of a field; what lies deeper is cut with what it lies in

Answer = dict[str, Any]
Pointer = Callable[[str, int], str]  # returns the call that reads a field from an offset on; the field "" is all


def size(value: Any) -> int:
    """Return how many characters a value has in an answer."""
    return len(json.dumps(value, ensure_ascii=False))


def fit(value: Any, most: int, pointer: Pointer, field: str = "") -> Any:
    """Return a value of at most so many characters: what is small stays whole, what is large is cut to fair shares."""
    if size(value) <= most:
        return value
    if isinstance(value, dict | list) and value:
        return _fit_members(value, most, pointer, field)
    return _beginning(value if isinstance(value, str) else text_of_value(value), most, pointer, field)


def fit_all(values: Sequence[Any], most: int, pointers: Sequence[Pointer]) -> list[Any]:
    """Return several values that have at most so many characters together, cut to fair shares."""
    share = _share([size(value) for value in values], most - 2 * len(values))
    return [fit(value, share, pointer) for value, pointer in zip(values, pointers, strict=True)]


def text_of_value(value: Any) -> str:
    """Return what pages of a field are cut from: a text itself, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def page(text: str, offset: int) -> Answer:
    """Return a page of a long text, and where the next one begins."""
    part = text[offset : offset + PAGE]
    end = offset + _fitting(part, MAX_ANSWER - ENVELOPE)
    return {"text": text[offset:end], "next_offset": end if end < len(text) else None, "characters": len(text)}


async def page_of_rows(
    rows: AsyncIterator[tuple[str, Answer]],
    pointer_of: Callable[[str], Pointer],
    room: int = MAX_ANSWER - ENVELOPE,
) -> tuple[list[Answer], str | None]:
    """Return as many rows as there is room for, and the key of the last of them when there are more."""
    kept: list[Answer] = []
    last = ""
    async for key, row in rows:
        fitting = fit(row, MAX_ROW, pointer_of(key))
        room -= size(fitting) + 2
        if room < 0:
            return kept, last
        kept.append(fitting)
        last = key
    return kept, None


def pick(document: Any, field: str) -> Any:
    """Return a field of a document by its JSON Pointer; raises BadArgument when there is none."""
    found = document
    if field and not field.startswith("/"):
        raise _no_field(field, document)
    for part in field.split("/")[1:]:
        members = dict(_members(found))
        name = part.replace("~1", "/").replace("~0", "~")
        if name not in members:
            raise _no_field(field, found)
        found = members[name]
    return found


def _no_field(field: str, where: Any) -> BadArgument:
    """Return the error for a field that is not there, with the names of those in its place."""
    known = ", ".join(f"/{_escaped(name)[:MAX_FIELD]}" for name, _ in _members(where)[:MAX_NAMED])
    ways = (f"fields are named from the top, each with a slash before it; there are: {known}",) if known else ()
    return BadArgument(f"is {field[:200]!r}, which is not a field of this answer", argument="field", suggestions=ways)


def nothing_more(field: str, offset: int) -> str:
    """Return the words in the place of a call where nothing reads the rest."""
    return "left out, the answer is too long"


def _fit_members(value: Any, most: int, pointer: Pointer, field: str) -> Any:
    """Return a container with its members cut; with too many, a list ends early and an object lacks the largest."""
    members, is_list = _members(value), isinstance(value, list)
    sizes = [size(member) for _, member in members]
    order = list(range(len(members))) if is_list else sorted(range(len(members)), key=sizes.__getitem__)
    kept, share = _kept(members, sizes, order, most - size(_left_out(len(members), pointer, field)) - 12, is_list)
    within = [f"{field}/{_escaped(members[place][0])}" for place in order[:kept]]
    deepest = max((len(name) for name, place in zip(within, order, strict=False) if sizes[place] > share), default=0)
    if field and deepest > MAX_FIELD:
        return _beginning(text_of_value(value), most, pointer, field)
    cut = {place: fit(members[place][1], share, pointer, name) for place, name in zip(order, within, strict=False)}
    more = [_left_out(len(members) - kept, pointer, field)] if kept < len(members) else []
    if is_list:
        return [cut[place] for place in range(kept)] + more
    return {members[place][0]: cut[place] for place in sorted(cut)} | ({"more": more[0]} if more else {})


def _kept(
    members: Sequence[tuple[str, Any]], sizes: Sequence[int], order: Sequence[int], room: int, is_list: bool
) -> tuple[int, int]:
    """Return how many members in their order can be shown, and how many characters each of them may have."""

    def share_of(number: int) -> int:
        shown = order[:number]
        names = 2 * number if is_list else sum(size(members[place][0]) + 4 for place in shown)
        return _share([sizes[place] for place in shown], room - names)

    def too_little(number: int) -> bool:
        needed = (min(sizes[place], _least(members[place][1])) for place in order[:number])
        return share_of(number) < max(needed)

    kept = bisect_right(range(1, len(order) + 1), False, key=too_little)
    return kept, share_of(kept) if kept else 0


def _least(value: Any) -> int:
    """Return the fewest characters to which a value is cut; else it is left out, and others have more."""
    return MIN_CONTAINER if isinstance(value, dict | list) else MIN_CUT


def _share(sizes: Sequence[int], room: int) -> int:
    """Max-min fairness: return the most characters that each may have so that all of them fit."""
    for place, needed in enumerate(sorted(sizes)):
        share = room // (len(sizes) - place)
        if needed > share:
            return max(share, 0)
        room -= needed
    return max(sizes, default=0)


def _members(value: Any) -> list[tuple[str, Any]]:
    """Return the members of a container with their names; nothing else has members."""
    if isinstance(value, Mapping):
        return [(str(name), member) for name, member in value.items()]
    if not isinstance(value, list):
        return []
    for name in ("key", "name"):
        names = [one.get(name) if isinstance(one, Mapping) else None for one in value]
        if all(isinstance(one, str) and one for one in names) and len(set(names)) == len(names):
            return [(str(own), one) for own, one in zip(names, value, strict=True)]
    return [(str(place), one) for place, one in enumerate(value)]


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _beginning(text: str, most: int, pointer: Pointer, field: str) -> str:
    """Return the beginning of a text, how much more there is, and the call that reads it."""
    end = _fitting(text, most - size(_rest(len(text), pointer(field, len(text)))))
    return text[:end] + _rest(len(text) - end, pointer(field, end))


def _rest(number: int, call: str) -> str:
    return f" [… {number:,} characters more: {call}]"


def _left_out(number: int, pointer: Pointer, field: str) -> str:
    return f"[… {number:,} more: {pointer(field, 0)}]"


def _fitting(text: str, room: int) -> int:
    """Return how many of the first characters of a text have at most so many in JSON, where some are escaped."""
    if room <= 2:
        return 0
    return bisect_right(range(1, min(len(text), room) + 1), room, key=lambda end: size(text[:end]))
