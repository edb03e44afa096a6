"""What a client can name: agents with what they are, and the library with what it takes; as much as fits an answer."""

import json
from typing import Any

from muster.app import Muster
from muster.app.serving.cleaning import cleaner
from muster.app.serving.library import LibraryItem, LibraryKind, OfferedAgent
from muster.domain.errors import MusterError
from muster.mcp.answers import Answer, compact

MOST_AGENTS, MOST_ITEMS = 100, 200
MOST_DESCRIBED = 50  # items of the library whose file is read
MOST_INPUTS = 30
LONGEST_DEFAULT = 100  # characters


def catalogue(muster: Muster) -> Answer:
    """Return agents and library; what is left out is counted."""
    agents, items = muster.library.offers(), muster.library.items()
    listed = [_item(muster, item, described=place < MOST_DESCRIBED) for place, item in enumerate(items[:MOST_ITEMS])]
    left = {"agents": len(agents) - MOST_AGENTS, "library": len(items) - MOST_ITEMS}
    more = {"not_listed": found} if (found := {name: number for name, number in left.items() if number > 0}) else {}
    return {"agents": [_agent(one) for one in agents[:MOST_AGENTS]], "library": listed, **more}


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
        inputs = {name: _input(one.required, one.default) for name, one in list(chain.inputs.items())[:MOST_INPUTS]}
        return compact({"steps": len(chain.steps), "inputs": inputs})
    if item.kind is LibraryKind.COUNCIL:
        return compact({"members": [member.name for member in muster.councils.load(item.path).members]})
    return {}


def _input(required: bool, default: Any) -> str:
    """Return whether an input must be given, and what it is otherwise."""
    if required:
        return "required"
    text = json.dumps(default, ensure_ascii=False)
    return f"optional; default {text if len(text) <= LONGEST_DEFAULT else text[:LONGEST_DEFAULT] + '…'}"
