"""The page of all fields of orders: one table for each kind of work, made from what is declared."""

from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from types import NoneType

from pydantic.alias_generators import to_camel

from muster.app.kinds import KINDS, AppKind
from muster.domain.doors import Door
from muster.domain.order import DeclaredField, choices_of, element_of, is_many, order_fields
from muster.mcp.server import TOOLS

HEAD = """# Fields of orders

Made by `make docs` from the declarations. What may be said to start each kind of work: as an option of its command, as
a field over HTTP and in jobs of the queue, and as a parameter of its tool over MCP. Bounds and defaults are the same
wherever a field can be given; an empty cell says that it cannot be given there."""
COLUMNS = ("option", "HTTP and jobs", "MCP", "values", "default", "")
TYPES = {str: "text", int: "whole number", float: "number", bool: "yes or no", Path: "file"}


def fields_page() -> str:
    """Return the page."""
    return "\n\n".join([HEAD, *(_table(known) for known in KINDS if known.kind.order)]) + "\n"


def _table(known: AppKind) -> str:
    head = [f"## {known.kind.title}", "", f"`{known.kind.command}`. {known.kind.about}", ""]
    rows = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    rows += [f"| {' | '.join(_row(known, one))} |" for one in order_fields(known.order) if _is_told(one)]
    return "\n".join([*head, *rows])


def _is_told(one: DeclaredField) -> bool:
    return any(one.at(door) for door in (Door.COMMAND, Door.REQUEST, Door.TOOL, Door.JOB))


def _row(known: AppKind, one: DeclaredField) -> Iterator[str]:
    declared = one.declared
    option = declared.metavar if declared.argument else (declared.option or (f"--{one.name.replace('_', '-')}",))[0]
    spelled = declared.alias or (to_camel(one.name) if known.doors.camel else one.name)
    told = any(issubclass(getattr(tool.takes, "order_kind", NoneType), known.order) for tool in TOOLS.values())
    yield f"`{option}`" if one.at(Door.COMMAND) else ""
    yield f"`{spelled}`" if one.at(Door.REQUEST) or one.at(Door.JOB) else ""
    yield f"`{one.name}`" if one.at(Door.TOOL) and told else ""
    yield _values(one)
    yield _default(one)
    yield declared.help.replace("|", "\\|")


def _values(one: DeclaredField) -> str:
    kind, inner = element_of(one.kind)
    bounds = inner or one.declared
    choices = choices_of(one.kind)
    words = ", ".join(f"`{choice}`" for choice in choices) if choices else TYPES.get(kind, "JSON")
    if kind in (int, float) and (bounds.min, bounds.max, bounds.above) != (None, None, None):
        words += f", {bounds.words}"
    return f"several: {words}" if is_many(one.kind) else words


def _default(one: DeclaredField) -> str:
    if one.declared.shown:
        return one.declared.shown
    if one.default is MISSING:
        return "required"
    return "" if one.default in (None, "", (), {}) else f"`{str(one.default).lower()}`"
