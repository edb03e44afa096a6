"""Things kept by account, in the order they came, and pages of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from muster.sim.ask import Refused


class Named(Protocol):
    """Whatever has an id."""

    @property
    def id(self) -> str:
        """Its name, which nothing else has."""


T = TypeVar("T", bound=Named)


class Shelf(Generic[T]):
    """Keeps things apart by account: under one key, nobody sees those of another."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, T]] = {}

    def put(self, account: str, thing: T) -> None:
        """Keep a thing."""
        self._kept.setdefault(account, {})[thing.id] = thing

    def get(self, account: str, name: str) -> T | None:
        """Find a thing."""
        return self._kept.get(account, {}).get(name)

    def drop(self, account: str, name: str) -> None:
        """Keep a thing no longer."""
        self._kept.get(account, {}).pop(name, None)

    def all(self) -> list[tuple[str, T]]:
        """Return every thing with its account."""
        return [(account, thing) for account, kept in self._kept.items() for thing in kept.values()]

    def newest_first(self, account: str) -> list[T]:
        """Give all things of an account."""
        return list(self._kept.get(account, {}).values())[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Some of a list, and whether there are more in the direction it was read."""

    things: Sequence[T]
    more: bool

    @property
    def ends(self) -> dict[str, str | bool | None]:
        """The fields of a list that both protocols have."""
        first, last = (self.things[0].id, self.things[-1].id) if self.things else (None, None)
        return {"has_more": self.more, "first_id": first, "last_id": last}


def page_after(things: Sequence[T], limit: int, after: str | None) -> Page[T]:
    """Give the things that follow `after`, or the first ones."""
    start = 0 if after is None else _place(things, after) + 1
    return Page(things=things[start : start + limit], more=start + limit < len(things))


def page_before(things: Sequence[T], limit: int, before: str) -> Page[T]:
    """Give the things that come just before `before`."""
    end = _place(things, before)
    start = max(0, end - limit)
    return Page(things=things[start:end], more=start > 0)


def limit_of(query: Mapping[str, str], default: int, most: int) -> int:
    """Read how many things are wanted on a page."""
    limit = query.get("limit", str(default))
    if not limit.isdecimal() or not 1 <= int(limit) <= most:
        raise Refused(400, f"limit: expected a number from 1 to {most}", code="invalid_value", param="limit")
    return int(limit)


def _place(things: Sequence[T], name: str) -> int:
    for index, thing in enumerate(things):
        if thing.id == name:
            return index
    raise Refused(400, f"there is nothing with the id {name} to list from")
