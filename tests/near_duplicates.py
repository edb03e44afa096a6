"""Value classes that declare nearly the same fields: what may be one declaration, or one value inside of another.

    python -m tests.near_duplicates

prints the pairs, those that share most first, and their number. Only what a class declares itself counts: a field that
it inherits is declared once.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from .test_rooms import modules, nodes_of

MIN_SHARED = 4  # fields
MIN_SHARE = 0.8  # of the fields of the larger class
VALUE_BASES = {"NamedTuple", "Struct", "BaseModel", "View", "TypedDict"}


@dataclass(frozen=True, slots=True)
class ValueClass:
    """A class that holds values, and the names of the fields that it declares."""

    name: str  # with its module
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Two value classes and the fields that both declare."""

    names: tuple[str, str]
    shared: frozenset[str]
    share: float  # of the fields of the larger class


def value_classes() -> Iterator[ValueClass]:
    """Yield every value class of the source that declares enough fields to be compared."""
    for module, tree in modules().items():
        for node in nodes_of(tree):
            if isinstance(node, ast.ClassDef) and _is_value(node):
                fields = frozenset(_fields(node))
                if len(fields) >= MIN_SHARED:
                    yield ValueClass(f"{module}.{node.name}", fields)


def near_duplicates() -> list[NearDuplicate]:
    """Return the pairs of value classes that share most of their fields, those that share most first."""
    pairs = ((one, two) for one, two in combinations(value_classes(), 2) if len(one.fields & two.fields) >= MIN_SHARED)
    alike = [pair for pair in (_compared(*both) for both in pairs) if pair.share >= MIN_SHARE]
    return sorted(alike, key=lambda pair: (-pair.share, -len(pair.shared), pair.names))


def _compared(first: ValueClass, second: ValueClass) -> NearDuplicate:
    shared = first.fields & second.fields
    share = len(shared) / max(len(first.fields), len(second.fields))
    return NearDuplicate(names=(first.name, second.name), shared=shared, share=share)


def _is_value(node: ast.ClassDef) -> bool:
    decorators = {_name(decorator) for decorator in node.decorator_list}
    return "dataclass" in decorators or any(_name(base) in VALUE_BASES for base in node.bases)


def _name(node: ast.expr) -> str:
    """Return the last word of what a decorator or a base is called."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for line in node.body:
        match line:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if _name(kind) != "ClassVar":
                yield name


if __name__ == "__main__":
    duplicates = near_duplicates()
    for pair in duplicates:
        print(f"{pair.share:.0%}  {' ~ '.join(pair.names)}: {', '.join(sorted(pair.shared))}")
    print(f"{len(duplicates)} pairs")
