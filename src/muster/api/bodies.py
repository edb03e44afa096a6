"""What clients send: bodies that are read strictly, with the names of docs/HTTP.md."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from muster.api.forms import field_label
from muster.domain.canonical import JsonObject
from muster.domain.money import MAX_USD
from muster.pool.order import MAX_PRIORITY, MAX_PROMPT

Text = Annotated[str, Field(min_length=1, max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Usd = Annotated[float, Field(gt=0, le=MAX_USD)]
Opinion = Literal["right", "wrong", "borderline"]


class StrictBody(BaseModel):
    """A body in which nothing may be misspelled."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, field_title_generator=field_label)

    @property
    def chosen_id(self) -> str | None:
        """The id that the client chose for the run; None: the server chooses."""
        return None

    @property
    def names(self) -> dict[str, str]:
        """The names of fields in requests, by those that errors have."""
        return {name: field.alias or name for name, field in type(self).model_fields.items()}

    def asked(self) -> JsonObject:
        """Return what is asked for, spelled in one way: equal requests have equal values.

        What is left out, null or as usual does not count, so a field that is new later changes no stored digest.
        """
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    def earlier(self) -> Sequence[JsonObject]:
        """Return what older programs understood otherwise: nothing."""
        return ()


class FeedbackBody(StrictBody):
    """Why a task is rejected, and a new total of its budget if that leaves too little for another round."""

    feedback: Text
    budget_usd: Usd | None = None


class AllowBody(StrictBody):
    """What is granted instead of the tool that a task asks for."""

    tool: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class DenyBody(StrictBody):
    """Why permission is denied."""

    reason: Annotated[str, Field(max_length=10_000)] = ""


class AmendBody(StrictBody):
    """What is changed about a task that has not begun."""

    prompt: Annotated[str, Field(min_length=1, max_length=MAX_PROMPT)] | None = None
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] | None = None


class ResumeBody(StrictBody):
    """How a run goes on: with a new total of its budget, if one is given."""

    budget_usd: Usd | None = None


class ForkBody(StrictBody):
    """From which key on a run is repeated."""

    from_key: Annotated[str, Field(min_length=1, max_length=1000, alias="from")]
    budget_usd: Usd | None = None


class AnswerBody(StrictBody):
    """The answer of a person to a question of a run."""

    text: Text
    key: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    client_id: Name | None = None


class TextBody(StrictBody):
    """A text that is sent or set."""

    text: Text


class ReviewBody(StrictBody):
    """What a person thinks of the verdict on a case."""

    run: Name
    case: Annotated[str, Field(min_length=1, max_length=1000)]
    opinion: Opinion
    note: Annotated[str, Field(max_length=10_000)] = ""
    epoch: Annotated[int, Field(ge=1)] | None = None
    subject: Name | None = None


class ScaleSlotsBody(StrictBody):
    """How many slots there are to be: a number, or +N or -N."""

    slots: Annotated[str, Field(pattern=r"^[+-]?[0-9]{1,6}$")] | Annotated[int, Field(ge=0, le=1_000_000)]


class DrainBody(StrictBody):
    """For how long tasks that run are waited for."""

    timeout_secs: Annotated[float, Field(ge=0, le=3600)] = 60.0
