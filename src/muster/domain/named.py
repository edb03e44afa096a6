"""What an order names: agents, and files of this machine."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

from muster.domain.order import FieldForm, order_fields

COUNCIL_JUDGE = "council:"  # before a policy, in place of an agent that judges


def named_agents(order: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the agents that an order names, also in values within it, each after the path of its field."""
    kind: Any = type(order)
    for one in order_fields(kind):
        given = getattr(order, one.name)
        for place, value in enumerate(given) if isinstance(given, tuple) else ((None, given),):
            path = f"{prefix}{one.name}" if place is None else f"{prefix}{one.name}[{place}]"
            if is_dataclass(value) and not isinstance(value, type):
                yield from named_agents(value, f"{path}.")
            elif one.declared.form is FieldForm.AGENT and isinstance(value, str) and _is_agent(value):
                yield path, value


def _is_agent(name: str) -> bool:
    return bool(name) and not name.startswith(COUNCIL_JUDGE)


def named_files(order: Any) -> Iterator[str]:
    """Yield the files that an order names."""
    kind: Any = type(order)
    for one in order_fields(kind):
        given = getattr(order, one.name)
        if one.declared.form is FieldForm.PATH and given:
            yield from map(str, given if isinstance(given, tuple) else (given,))
