"""What a client can name: agents with what they are, and the library with what it takes; as much as fits an answer."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from muster.app import Muster
from muster.app.parts.library import LibraryItem, LibraryKind, OfferedAgent
from muster.app.serving.cleaning import cleaner
from muster.domain.errors import BadArgument, MusterError
from muster.mcp.answers import compact
from muster.mcp.sizes import MAX_ANSWER, Answer, Pointer, nothing_more, page_of_rows

MAX_AGENTS, MAX_ITEMS = 100, 200
MAX_DESCRIBED = 50  # items of the library whose file is read for one answer
MAX_INPUTS = 30
MAX_DEFAULT = 100  # characters
ROOM = MAX_ANSWER // 3  # characters of the agents, and of the library, in an overview of all


async def catalogue(muster: Muster) -> Answer:
    """Return agents and library, as much as an overview holds; what is left out is counted, with what lists it."""
    agents, items = muster.library.offers(), muster.library.items()
    some, _ = await page_of_rows(_agents(agents[:MAX_AGENTS]), _no_pointer, ROOM)
    files, _ = await page_of_rows(_library(muster, items[:MAX_ITEMS]), _no_pointer, ROOM)
    left = {"agents": len(agents) - len(some), "library": len(items) - len(files)}
    more = {name: f"{number:,} more: overview(part={name!r})" for name, number in left.items() if number > 0}
    return {"agents": some, "library": files} | ({"not_listed": more} if more else {})


async def catalogue_page(muster: Muster, part: str, after: str) -> Answer:
    """Return a page of the agents, or of the library, after the last one of the page before."""
    if part == "agents":
        agents = muster.library.offers()
        begin = _begin([one.name for one in agents], after)
        kept, last = await page_of_rows(_agents(agents[begin:]), _no_pointer)
        return {"agents": kept, "total": len(agents), "next_after": last}
    items = muster.library.items()
    begin = _begin([_key(one) for one in items], after)
    some = items[begin : begin + MAX_DESCRIBED]
    kept, last = await page_of_rows(_library(muster, some), _no_pointer)
    if last is None and begin + len(some) < len(items):
        last = _key(some[-1])
    return {"library": kept, "total": len(items), "next_after": last}


def _begin(keys: Sequence[str], after: str) -> int:
    if after and after not in keys:
        raise BadArgument(f"is {after[:100]!r}, which is not listed", argument="after")
    return keys.index(after) + 1 if after else 0


def _no_pointer(key: str) -> Pointer:
    """Return the words where an agent or a file of the operator is described at too great a length."""
    return nothing_more


async def _agents(agents: Sequence[OfferedAgent]) -> AsyncIterator[tuple[str, Answer]]:
    for agent in agents:
        yield agent.name, _agent(agent)


async def _library(muster: Muster, items: Sequence[LibraryItem]) -> AsyncIterator[tuple[str, Answer]]:
    for place, item in enumerate(items):
        yield _key(item), _item(muster, item, described=place < MAX_DESCRIBED)


def _key(item: LibraryItem) -> str:
    return f"{item.kind} {item.name}"


def _agent(agent: OfferedAgent) -> Answer:
    return compact({"name": agent.name, "kind": agent.kind, "model": agent.model})


def _item(muster: Muster, item: LibraryItem, *, described: bool) -> Answer:
    """Return an item by its name, with what it takes; a file that cannot be read says why."""
    named = {"kind": str(item.kind), "name": item.name}
    try:
        return named | (_described(muster, item) if described else {})
    except MusterError as error:
        return named | {"error": cleaner(muster.settings)(error.message)}


def _described(muster: Muster, item: LibraryItem) -> Answer:
    if item.kind is LibraryKind.CHAIN:
        chain = muster.chains.load(item.path)
        inputs = {name: _input(one.required, one.default) for name, one in list(chain.inputs.items())[:MAX_INPUTS]}
        return compact({"steps": len(chain.steps), "inputs": inputs})
    if item.kind is LibraryKind.COUNCIL:
        return compact({"members": [member.name for member in muster.councils.load(item.path).members]})
    return {}


def _input(required: bool, default: Any) -> str:
    """Return whether an input must be given, and what it is otherwise."""
    if required:
        return "required"
    text = json.dumps(default, ensure_ascii=False)
    return f"optional; default {text if len(text) <= MAX_DEFAULT else text[:MAX_DEFAULT] + '…'}"
