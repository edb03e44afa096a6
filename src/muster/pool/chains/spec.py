"""The spec of a chain run as it is stored, and back: strict, since a program of the user's may write one too."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any

from muster.domain.canonical import Json
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.pool.chains.chain import MAX_ROWS, ChainSpec
from muster.pool.chains.rules import chain_flaws, input_flaws
from muster.text.declared_values import read_value
from muster.text.document_tree import spelled

NO_CHAIN = "not a valid spec of a chain"


def stored(spec: ChainSpec) -> Any:
    """Return a spec as it is stored: what is as usual is left out."""
    return _lean(spec)


def read_spec(spec: Any) -> ChainSpec:
    """Read a stored or given spec; raises BadArgument with everything that is wrong with it."""
    return read_value(spec, ChainSpec, about=NO_CHAIN, rules=_flaws)


def _flaws(spec: ChainSpec) -> Iterator[FieldFlaw]:
    before = {name: frozenset(variables) for name, variables in spec.before.items()}
    for place, message in chain_flaws(spec.chain, before=before):
        yield FieldFlaw(path=spelled(place), message=f"{spelled(place)}: {message}", by_itself=True)
    if not spec.chain.steps:
        yield FieldFlaw(path="chain.groups", message="needs at least one step", code=FlawCode.OUT_OF_BOUNDS)
    if len(spec.rows) > MAX_ROWS:
        given = f"{len(spec.rows)}"
        message = f"must have at most {MAX_ROWS} entries"
        yield FieldFlaw(path="rows", message=message, code=FlawCode.OUT_OF_BOUNDS, given=given)
    elif spec.rows:
        for index, row in enumerate(spec.rows):
            for flaw in input_flaws(spec.chain, {**spec.input, **row}):
                yield replace(flaw, path=f"rows[{index}].{flaw.path}", message=f"row {index + 1}: {flaw.message}")
    else:
        yield from (replace(flaw, path=f"input.{flaw.path}") for flaw in input_flaws(spec.chain, spec.input))


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
