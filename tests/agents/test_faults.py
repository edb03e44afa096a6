import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from muster.agents.anthropic import answer as anthropic
from muster.agents.faults import MAX_MESSAGE, Account, retry_after
from muster.agents.openai import answer as openai
from muster.domain.errors import (
    AuthRefused,
    BadConfiguration,
    InvalidRequest,
    OutcomeUnknown,
    Overloaded,
    Paid,
    ProviderFault,
    RateLimited,
    TryLater,
    UnknownModel,
    WireError,
)

Fault = Callable[[int, Mapping[str, str], bytes, Account], WireError]
KEY = "sk-very-secret"
ACCOUNT = Account(place="some/model", variable="SOME_KEY", key=KEY)
BODY = json.dumps({"type": "error", "error": {"type": "x", "message": "the provider's words"}}).encode()
BOTH = pytest.mark.parametrize("fault", [anthropic.fault, openai.fault], ids=["anthropic", "openai"])

STATUSES = {
    **dict.fromkeys((300, 301, 307, 308), InvalidRequest),
    **dict.fromkeys((400, 405, 410, 413, 422), InvalidRequest),
    **dict.fromkeys((401, 402, 403), AuthRefused),
    404: UnknownModel,
    **dict.fromkeys((409, 425), TryLater),
    429: RateLimited,
    **dict.fromkeys((503, 529), Overloaded),
    **dict.fromkeys((408, 502, 504, 520, 521, 522, 523, 524), OutcomeUnknown),
    **dict.fromkeys((500, 501, 530, 599), ProviderFault),
}


@BOTH
@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_its_place_in_the_tree(fault: Fault, status: int) -> None:
    error = fault(status, {"retry-after": "7", "request-id": "r", "x-request-id": "r"}, BODY, ACCOUNT)
    assert type(error) is STATUSES[status]
    assert (error.status, error.retry_after, error.request_id) == (status, 7.0, "r")
    assert error.message == f"some/model answered {status}: the provider's words"
    assert error.paid is (Paid.UNKNOWN if isinstance(error, OutcomeUnknown) else Paid.NO)


@BOTH
def test_a_refused_key_says_which_variable_to_set(fault: Fault) -> None:
    assert fault(401, {}, BODY, ACCOUNT).suggestions == ("set SOME_KEY to a key that is valid here",)
    assert "key_env" in fault(401, {}, BODY, replace(ACCOUNT, variable="")).suggestions[0]


@BOTH
def test_a_redirect_says_why_it_is_not_followed(fault: Fault) -> None:
    assert "base address" in fault(308, {}, b"", ACCOUNT).suggestions[0]


@BOTH
@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"message": f"bad key {KEY}"}}).encode(),
        f"<html>{KEY}</html>".encode(),
        json.dumps({"detail": KEY}).encode(),
        json.dumps({"error": {"message": [KEY]}}).encode(),
        KEY.encode() * 50_000,
    ],
)
def test_the_key_never_shows(fault: Fault, body: bytes) -> None:
    error = fault(401, {}, body, ACCOUNT)
    assert KEY[:7] not in f"{error} {error.record()} {ACCOUNT!r} {error!r}"


@BOTH
@pytest.mark.parametrize("body", [b"", b"\xff", b"null", b"[]", b"{}", b'{"error": null}', b'{"error": 3}'])
def test_any_body_makes_an_error(fault: Fault, body: bytes) -> None:
    assert isinstance(fault(500, {}, body, ACCOUNT), ProviderFault)


@BOTH
def test_long_messages_are_cut(fault: Fault) -> None:
    body = json.dumps({"error": {"message": "x" * 100_000}}).encode()
    assert len(fault(400, {}, body, ACCOUNT).message) < MAX_MESSAGE + 100


def test_a_quota_that_is_used_up_stops_the_run() -> None:
    body = json.dumps({"error": {"message": "no credit", "code": "insufficient_quota"}}).encode()
    error = openai.fault(429, {"retry-after": "1"}, body, ACCOUNT)
    assert type(error) is AuthRefused
    assert "credit" in error.suggestions[0]


def test_a_text_that_was_flagged_does_not_stop_the_run() -> None:
    body = json.dumps({"error": {"message": "flagged", "code": 403, "metadata": {"reasons": ["x"]}}}).encode()
    assert type(openai.fault(403, {}, body, ACCOUNT)) is InvalidRequest


def test_an_account_without_credit_stops_the_run_at_anthropic() -> None:
    body = json.dumps({"error": {"message": "no credit", "type": "billing_error"}}).encode()
    assert type(anthropic.fault(400, {}, body, ACCOUNT)) is AuthRefused


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "86400000"}, 86_400_000.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Sun, 15 Nov 2026 10:00:30 GMT", "date": "Sun, 15 Nov 2026 10:00:00 GMT"}, 30.0),
        ({"retry-after": "Sun, 15 Nov 2026 09:00:00 GMT", "date": "Sun, 15 Nov 2026 10:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 15 Nov 2026 10:00:30 GMT"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_spellings(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_key_that_fits_no_header_is_refused_without_being_shown() -> None:
    with pytest.raises(BadConfiguration, match="some/model") as caught:
        Account(place="some/model", variable="SOME_KEY", key="sk-abc\n")
    assert "sk-abc" not in str(caught.value)
