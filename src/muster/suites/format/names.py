"""Field names that no form knows: misspelt ones, misplaced ones, and ones that belong to other tools.

The known names are those of the forms; nothing is listed twice. Mappings with keys of the user's own (context,
env_overrides, args_match, variables, schemas) are not forms, so any name is allowed in them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import Any, get_args

from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo

from muster.domain.canonical import Json, JsonObject
from muster.suites.format.foreign import advice_on
from muster.suites.format.forms import (
    CaseForm,
    CheckForm,
    DefaultsForm,
    EvaluatorForm,
    ExpectationForm,
    ExpectedForm,
    HeadForm,
    InputForm,
    MessageForm,
    RubricForm,
    ToolForm,
    ToolResultForm,
)
from muster.text.diagnostics import UnknownName
from muster.text.document_tree import Place, spelled
from muster.text.forms import Form

CLOSE = 0.8  # share of letters in common from which a name counts as misspelt
_MIN_NAME = 4  # shorter names are like too many others: uid is not a misspelt id
_PRIVATE = ("x-", "x_", "$")  # prefixes of names that are meant for other tools
# Forms that decide whether a case passes: a field that is ignored here could let a bad answer pass.
_DECIDING = (ExpectedForm, ExpectationForm, CheckForm, RubricForm, EvaluatorForm, ToolResultForm)
# Forms in which names of other tools would be taken for what decides.
_AROUND_ANSWERS = (HeadForm, DefaultsForm, CaseForm, InputForm, MessageForm, ToolForm)
_OF_MESSAGES = frozenset({"tool_calls", "refusal"})  # that providers give to messages, which are no expectations there
# Fields that decide, under names that mean nothing else; one level too high or too low they would be ignored.
_DISTINCTIVE = frozenset(
    {"tool_sequence", "rubric", "auto_check", "critical", "evaluator", "threshold", "effectiveness_threshold"}
    | {"golden_path", "golden_threshold", "process_cmd", "judge_prompt", "follow_ups", "evaluator_config", "expected"}
    | {"model_effort", "env_overrides"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The names that one form knows, and the forms below some of them."""

    known: frozenset[str]
    below: Mapping[str, type[Form]]


def unknown_names(form: type[Form], tree: Any, place: Place = ()) -> Iterator[UnknownName]:
    """Return the unknown names of a mapping that is meant for a form, and of all mappings below it."""
    if not isinstance(tree, Mapping):
        return
    table = _table(form)
    for name, value in tree.items():
        if name not in table.known:
            if not str(name).startswith(_PRIVATE):
                yield _unknown(form, str(name), (*place, name))
        elif name in table.below:
            if isinstance(value, list):
                for index, item in enumerate(value):
                    yield from unknown_names(table.below[name], item, (*place, name, index))
            else:
                yield from unknown_names(table.below[name], value, (*place, name))


def _unknown(form: type[Form], name: str, place: Place) -> UnknownName:
    if near := nearest_name(name, _table(form).known):
        return UnknownName(place=place, message=f"unknown field; did you mean {near}?", wrong=True)
    if near := nearest_name(name, _DISTINCTIVE):
        home = _homes(CaseForm)[near]
        return UnknownName(place=place, message=f"unknown field here; did you mean {home} of a case?", wrong=True)
    is_own = form is MessageForm and name in _OF_MESSAGES
    if form in _AROUND_ANSWERS and not is_own and (advice := advice_on(name)):
        return UnknownName(place=place, message=f"unknown field here, it would be ignored; {advice}", wrong=True)
    return UnknownName(place=place, message="unknown field", wrong=form in _DECIDING)


def nearest_name(name: str, known: frozenset[str]) -> str:
    """Return the known name that was meant, or nothing when there is none."""
    ratio, best = max((_likeness(name, one), one) for one in sorted(known))
    return best if ratio >= CLOSE else ""


def _likeness(name: str, known: str) -> float:
    ours, theirs = _words(known), _words(name)
    if "".join(ours) == "".join(theirs):
        return 1.0
    # A name with a word more or less is another name: bundle is not a misspelt bundle_id.
    if len(known) < _MIN_NAME or set(ours) < set(theirs) or set(theirs) < set(ours):
        return 0.0
    ratio = SequenceMatcher(None, "_".join(theirs), "_".join(ours), autojunk=False).ratio()
    return max(ratio, CLOSE) if _is_one_off("_".join(theirs), "_".join(ours)) else ratio


def _is_one_off(name: str, known: str) -> bool:
    """Return whether one letter is another one or changed places with the next; of short names that is a fifth."""
    if len(name) != len(known):
        return False
    differing = [place for place, letters in enumerate(zip(name, known, strict=True)) if letters[0] != letters[1]]
    if len(differing) == 2:
        first, second = differing
        return second == first + 1 and name[first] == known[second] and name[second] == known[first]
    return len(differing) == 1


def _words(name: str) -> list[str]:
    return [word for word in name.casefold().replace("-", "_").replace(" ", "_").split("_") if word]


@cache
def _table(form: type[Form]) -> _Table:
    fields = [(_names(name, info), _form_in(info.annotation)) for name, info in form.model_fields.items()]
    known = {name for names, _ in fields for name in names} | ({"cases"} if form is HeadForm else set())
    below = {name: found for names, found in fields if found is not None for name in names}
    return _Table(known=frozenset(known), below=below)


def _names(name: str, info: FieldInfo) -> tuple[str, ...]:
    if isinstance(info.validation_alias, AliasChoices):
        return tuple(str(choice) for choice in info.validation_alias.choices)
    return (info.alias or name,)


def _form_in(annotation: Any) -> type[Form] | None:
    """Return the form that a field holds, alone or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, Form):
        return annotation
    return next((found for part in get_args(annotation) if (found := _form_in(part)) is not None), None)


@cache
def _homes(form: type[Form], place: Place = ()) -> Mapping[str, str]:
    """Return where each name below a case belongs; names nearer to the case come first."""
    table = _table(form)
    homes = {name: spelled((*place, name)) for name in sorted(table.known)}
    for name in sorted(table.below):
        for below, home in _homes(table.below[name], (*place, name)).items():
            homes.setdefault(below, home)
    return homes


STAND_IN = "stand-in"  # the name of what is not there
_MESSAGE = {"role": "user", "content": "-"}
_STAND_INS: Mapping[str, Json] = {
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


def _replace(rest: JsonObject, place: Place) -> None:
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
