"""JSON Schemas of suites, verify.yaml and chains for editors, made from the forms that read them.

An editor sees values where our reader sees text as it was written, so a text may be a number or a truth value here.
Names that are not known are refused, which our reader leaves to lint; names that begin with x- are free.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from muster.councils.policy import PolicyForm
from muster.domain.canonical import Json
from muster.pool.chains.forms import ChainForm, GroupForm, StepForm
from muster.suites.format.forms import CaseForm, HeadForm
from muster.text import forms as v
from muster.text.forms import Form
from muster.verify.declaration.forms import AgentForm, TopForm

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PRIVATE = "^(x-|x_|\\$)"
_WRITTEN = ["string", "number", "boolean"]  # what an editor makes of a text without quotes
_SINGLE = "one_or_more"  # how the validators end that take one item where a list is expected
_ALSO_TEXT = frozenset({"_dataset", "_parts"})
_LEFT_OUT = frozenset({"default", "allow_inf_nan"})
# Bounds after a validator come out under the names that pydantic has for them.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


class SuiteFile(HeadForm):
    """A suite: behavioural tests of an agent."""

    cases: list[CaseForm] = Field(min_length=1)


class VerifyFile(TopForm):
    """verify.yaml: who verifies code, in which wave, and what must hold."""

    agents: list[AgentForm] = Field(min_length=1)


class ChainFile(ChainForm):
    """chain.yaml: steps of prompts and commands."""

    steps: list[StepForm | GroupForm] = Field(min_length=1)


def suite_schema() -> dict[str, Json]:
    """Return the schema of a suite."""
    return _schema(SuiteFile, "A suite of Muster")


def verify_schema() -> dict[str, Json]:
    """Return the schema of verify.yaml."""
    return _schema(VerifyFile, "verify.yaml of Muster")


def chain_schema() -> dict[str, Json]:
    """Return the schema of a chain."""
    return _schema(ChainFile, "A chain of Muster")


def council_schema() -> dict[str, Json]:
    """Return the schema of the policy of a council."""
    return _schema(PolicyForm, "council.yaml of Muster")


def _schema(root: type[Form], title: str) -> dict[str, Json]:
    found = root.model_json_schema(by_alias=True, mode="validation")
    forms = {form.__name__: form for form in _forms(root)}
    for name, definition in found.get("$defs", {}).items():
        if name in forms:
            _tighten(definition, forms[name])
    _tighten(found, root)
    loose: dict[str, Json] = _as_written(found)
    return {"$schema": DIALECT, **loose, "title": title}


def _forms(root: type[BaseModel]) -> set[type[Form]]:
    """Return a form and all forms in it."""
    found: set[type[Form]] = set()
    waiting: list[Any] = [root]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, type) and issubclass(kind, Form) and kind not in found:
            found.add(kind)
            waiting += [info.annotation for info in kind.model_fields.values()]
        waiting += getattr(kind, "__args__", ())
    return found


def _tighten(definition: dict[str, Any], form: type[Form]) -> None:
    """Refuse unknown names, and allow what the validators of a form allow besides."""
    definition["additionalProperties"] = False
    definition["patternProperties"] = {_PRIVATE: True}
    properties: dict[str, Any] = definition["properties"]
    required = list(definition.get("required", ()))
    for name, info in form.model_fields.items():
        shown = info.alias or _first(info.validation_alias) or name
        validators = _validators(info.metadata, info.annotation)
        properties[shown] = _allowing(properties[shown], validators, optional=shown not in required)
        if isinstance(info.validation_alias, AliasChoices):
            others = [str(choice) for choice in info.validation_alias.choices]
            properties |= dict.fromkeys(others, properties[shown])
            if shown in required:
                required.remove(shown)
                definition["anyOf"] = [{"required": [other]} for other in others]
    definition["required"] = required


def _validators(metadata: Iterable[Any], annotation: Any) -> set[str]:
    """Return the names of the validators that see a value as it was written, also those of one side of a union."""
    beside = [one for side in getattr(annotation, "__args__", ()) for one in getattr(side, "__metadata__", ())]
    return {one.func.__name__ for one in (*metadata, *beside) if isinstance(one, BeforeValidator)}


def _first(alias: Any) -> str | None:
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else None


def _allowing(given: dict[str, Any], validators: set[str], *, optional: bool) -> dict[str, Json]:
    """Allow one item for a list where it may stand alone, and null for what may be left out."""
    also: list[dict[str, Json]] = []
    if any(name.endswith(_SINGLE) for name in validators):
        also.append(given["items"])
    if validators & _ALSO_TEXT:
        also.append({"type": "string"})
    if optional:
        also.append({"type": "null"})
    return {"anyOf": [given, *also]} if also else given


def _part(name: str, value: Any) -> Any:
    """Return a part of a schema; below `properties` any name is that of a key, be it `default`."""
    return {key: _as_written(one) for key, one in value.items()} if name == "properties" else _as_written(value)


def _as_written(value: Any) -> Any:
    """Let a text be what an editor takes it for when it has no quotes; a role may also be `model`."""
    if isinstance(value, list):
        return [_as_written(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    found = {_BOUNDS.get(name, name): _part(name, one) for name, one in value.items() if name not in _LEFT_OUT}
    if found.get("type") == "string" and "enum" not in found and "const" not in found:
        found["type"] = _WRITTEN
    if found.get("enum") == list(v.ROLES):
        found["enum"] = [*v.ROLES, "model"]
    return found
