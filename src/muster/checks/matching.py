"""When two JSON values are the same, and when one holds all that the other asks for."""

from collections.abc import Mapping

from muster.domain.canonical import Json


def same(left: Json, right: Json) -> bool:
    """Whether two JSON values are equal; true is not 1, and 1 is 1.0."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if _is_list(left) and _is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def covers(found: Json, asked: Json) -> bool:
    """Whether a value holds what is asked: of objects at least the names asked for, of anything else exactly that."""
    if isinstance(asked, Mapping):
        return isinstance(found, Mapping) and all(
            name in found and covers(found[name], value) for name, value in asked.items()
        )
    return same(found, asked)


def _is_list(value: Json) -> bool:
    return isinstance(value, list | tuple)
