"""What is left of a case that does not fit its form, so that everything wrong with it can be told at once.

Items of lists that do not fit are replaced by ones that say nothing, so that the places of the others stay the same.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from muster.formats.forms import CaseForm
from muster.formats.tree import Place

STAND_IN = "stand-in"  # the name of what is not there
_MESSAGE = {"role": "user", "content": "-"}
_STAND_INS: Mapping[str, Any] = {
    "messages": _MESSAGE,
    "tools": {"name": STAND_IN},
    "results": {"result": ""},
    "output": {"kind": "contains", "value": "-"},
    "tool_sequence": {"tool": "-"},
    "rubric": {"id": STAND_IN, "description": "-"},
}


def rest_of(tree: Any, flawed: Iterable[Place], name: str) -> CaseForm | None:
    """Return the form of a case without the places that do not fit; None when nothing is left to look at."""
    if not isinstance(tree, Mapping):
        return None
    rest = _copied(tree)
    for place in flawed:
        _replace(rest, place)
    rest.setdefault("id", name)
    rest.setdefault("input", {"messages": [_MESSAGE]})
    try:
        return CaseForm.model_validate(rest)
    except ValidationError:
        return None


def _replace(rest: dict[str, Any], place: Place) -> None:
    """Take out a place: the innermost item of a list of forms that it is in, or else its key."""
    if (place[:2] == ("input", "messages") and len(place) == 2) or place == ("input",):
        rest["input"] = {"messages": [_MESSAGE]}
        return
    around: Any = rest
    taken: tuple[Any, Any, Any] | None = None  # from what, which, and what stands for it
    for above, step in zip((None, *place), place, strict=False):
        if isinstance(step, int) and above in _STAND_INS:
            taken = (around, step, _STAND_INS[str(above)])
        elif taken is None or not isinstance(taken[1], int):
            taken = (around, step, None)
        try:
            around = around[step]
        except (LookupError, TypeError):  # it is missing
            break
    if taken is not None:
        _put(*taken)


def _put(around: Any, step: Any, stand_in: Any) -> None:
    if stand_in is not None:
        around[step] = stand_in
    elif isinstance(around, dict):
        around.pop(step, None)


def _copied(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {key: _copied(value) for key, value in tree.items()}
    return [_copied(value) for value in tree] if isinstance(tree, list) else tree
