"""The kinds of values in a form: text as it was written, numbers and truth values that are such, JSON, names."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, model_validator

from muster.domain.canonical import Json
from muster.text.document_tree import Plain, plain_value
from muster.text.json_documents import flaw_of

_KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = re.compile(r"PATH|LD_.*|DYLD_.*|PYTHON.*|MUSTER_.*")
_TOOL = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")

# Beyond these, means of scores overflow, or are rounded until a bad one is good.
_MIN_WEIGHT, _MAX_WEIGHT = 0.000001, 1_000_000


def is_kebab(text: str) -> bool:
    """Return whether a text is a name like code-reviewer."""
    return _KEBAB.fullmatch(text) is not None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)  # a word without quotes as it was written: 1.10 stays 1.10
    raise ValueError("must be a string; put it in quotes")


def is_string(value: Any) -> bool:
    """Return whether a value is a string: in quotes, or a word that means no number, truth value or moment."""
    return isinstance(value, str) and isinstance(_meant(value), str)


def _string(value: Any) -> Any:
    if not is_string(value):
        raise ValueError("must be a string; put it in quotes")
    return value


def _meant(value: Any) -> Any:
    return value.meaning() if isinstance(value, Plain) else value


def _version(value: Any) -> Any:
    """Return a number as it was meant; true is none, though Python holds it equal to 1."""
    found = _meant(value)
    return str(found) if isinstance(found, bool) else found


def _json(value: Any) -> Any:
    found = plain_value(value)
    if flaw := flaw_of(found):
        raise ValueError(f"cannot be stored as JSON: {flaw}")
    return found


def _json_object(value: Any) -> Json:
    found = _json(value)
    if not isinstance(found, dict):
        raise ValueError("must be a mapping")
    return found


def one_or_more(value: Any) -> Any:
    """Take one text where a list is expected."""
    return [value] if isinstance(value, str) else value


def _variable_name(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid name of an environment variable")
    return name


def _variable(name: str) -> str:
    if _RESERVED.fullmatch(name.upper()):
        raise ValueError(f"a suite cannot set {name}")
    return name


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character")
    return text


def _tool_name(name: str) -> str:
    if not _TOOL.fullmatch(name):
        raise ValueError("a tool name has only letters, digits and _.:/-")
    return name


def _kebab(name: str) -> str:
    if not is_kebab(name):
        raise ValueError("must be kebab-case: lower-case letters and digits, separated by single hyphens")
    return name


def _weight(weight: float) -> float:
    if weight and not _MIN_WEIGHT <= weight <= _MAX_WEIGHT:
        raise ValueError(f"a weight is 0, or from {_MIN_WEIGHT:f} to {_MAX_WEIGHT:,}")
    return weight


def _role(value: Any) -> Any:
    return "assistant" if value == "model" else value


Text = Annotated[str, BeforeValidator(_text)]
Word = Annotated[Text, AfterValidator(_not_empty)]
String = Annotated[Word, BeforeValidator(_string)]  # a number without quotes is none
Words = Annotated[list[Word], BeforeValidator(one_or_more)]  # one may stand alone
KebabName = Annotated[Text, AfterValidator(_kebab)]
ToolName = Annotated[Text, AfterValidator(_tool_name)]
CommandWord = Annotated[Word, AfterValidator(_without_nul)]
VariableName = Annotated[Text, AfterValidator(_variable_name)]
EnvironmentName = Annotated[VariableName, AfterValidator(_variable)]
EnvironmentValue = Annotated[Text, AfterValidator(_without_nul)]

Truth = Annotated[bool, Strict(), BeforeValidator(_meant)]
Whole = Annotated[int, Strict(), BeforeValidator(_meant)]
Count = Annotated[Whole, Field(ge=1, lt=2**31)]
Natural = Annotated[Whole, Field(ge=0, lt=2**31)]
Seed = Annotated[Whole, Field(ge=-(2**63), lt=2**64)]
Number = Annotated[float, Strict(), BeforeValidator(_meant), Field(allow_inf_nan=False)]
NotNegative = Annotated[Number, Field(ge=0)]
Weight = Annotated[NotNegative, AfterValidator(_weight)]
Seconds = Annotated[Number, Field(gt=0, le=604_800)]
Share = Annotated[Number, Field(ge=0, le=1)]
Version = Annotated[Literal[1], BeforeValidator(_version)]

AnyJson = Annotated[Any, BeforeValidator(_json)]
JsonObject = Annotated[dict[str, Json], BeforeValidator(_json_object)]
ROLES = ("user", "assistant", "system", "tool")
RoleName = Annotated[Literal["user", "assistant", "system", "tool"], BeforeValidator(_role)]


class Form(BaseModel):
    """What all forms share: a key without a value is as good as none."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, (dict, Mapping)):  # what a file says is a dict, which is found out sooner
            raise ValueError("must be a mapping")
        if None not in given.values():
            return given
        return {key: value for key, value in given.items() if value is not None}
