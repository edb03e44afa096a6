"""The spec of a chain run as it is stored, and back: strict, since a program of the user's may write one too."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.pool.chains.chain import MOST_ROWS, Chain, ChainInput, ChainSpec, ChainStep, KnownValues
from muster.pool.chains.rules import chain_flaws, input_flaws
from muster.pool.setup import TreeSetup
from muster.text import typed
from muster.text.document_tree import spelled

_MOST_FLAWS = 20
_BELOW: Mapping[str, Any] = {"chain": Chain, "known": KnownValues, "setup": TreeSetup}


def stored(spec: ChainSpec) -> Any:
    """Return a spec as it is stored: what is as usual is left out."""
    return _lean(spec)


def read_spec(spec: Any) -> ChainSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    flaws = list(_unknown(spec))
    if not flaws:
        try:
            found = typed.convert(spec, ChainSpec)
        except typed.ValidationError as error:
            flaws = [str(error)]
        else:
            flaws = list(_flaws(found))
    if flaws:
        more = f"; and {len(flaws) - _MOST_FLAWS} more" if len(flaws) > _MOST_FLAWS else ""
        raise BadArgument(f"not a valid spec of a chain: {'; '.join(flaws[:_MOST_FLAWS])}{more}")
    return found


def _flaws(spec: ChainSpec) -> Iterator[str]:
    before = {name: frozenset(variables) for name, variables in spec.before.items()}
    for place, message in chain_flaws(spec.chain, before=before):
        yield f"{spelled(place)}: {message}"
    if not spec.chain.steps:
        yield "chain.groups: at least one step is needed"
    if len(spec.rows) > MOST_ROWS:
        yield f"rows: {len(spec.rows):,} are more than {MOST_ROWS:,}"
    elif spec.rows:
        for index, row in enumerate(spec.rows):
            yield from (f"row {index + 1}: {flaw}" for flaw in input_flaws(spec.chain, {**spec.input, **row}))
    else:
        yield from map(str, input_flaws(spec.chain, spec.input))


def _unknown(given: Any, kind: Any = ChainSpec, where: str = "") -> Iterator[str]:
    """Yield the keys that are not known; values are checked later."""
    if not isinstance(given, Mapping):
        yield from () if where else ("must be an object",)
        return
    known = {field.name for field in fields(kind)}
    for key, value in given.items():
        if key not in known:
            yield f"unknown key {where}{str(key)[:100]!r}"
        elif kind is ChainSpec and key in _BELOW:
            yield from _unknown(value, _BELOW[key], f"{key}.")
        elif kind is Chain and key == "groups" and isinstance(value, list | tuple):
            steps = (step for group in value if isinstance(group, list | tuple) for step in group)
            for step in steps:
                yield from _unknown(step, ChainStep, "steps.")
        elif kind is Chain and key == "inputs" and isinstance(value, Mapping):
            for one in value.values():
                yield from _unknown(one, ChainInput, "inputs.")


def _lean(value: Any) -> Json:
    if is_dataclass(value):
        kept = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: _lean(found) for field, found in kept if found != _usual(field)}
    if isinstance(value, tuple | list):
        return [_lean(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _lean(item) for key, item in value.items()}
    return str(value) if isinstance(value, StrEnum) else value


def _usual(field: "Field[Any]") -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default
