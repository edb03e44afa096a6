"""Batches as their providers show them."""

import json
from typing import Any

import pytest

from muster.agents.anthropic import batch as anthropic
from muster.agents.faults import MAX_MESSAGE, Account
from muster.agents.openai import batch as openai
from muster.domain.batch import BatchProgress, ListedBatch, Phase, Shortfall
from muster.domain.errors import OutcomeUnknown, Paid, TryLater

KEY = "sk-very-secret"
ACCOUNT = Account(place="the batches at http://h", key=KEY)
URL = "http://h/v1/messages/batches/msgbatch_1/results"
MESSAGES: dict[str, Any] = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "in_progress",
    "request_counts": {"processing": 5, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
    "created_at": "2026-11-03T10:00:00.250000+00:00",
    "expires_at": "2026-11-04T10:00:00Z",
    "ended_at": None,
    "cancel_initiated_at": None,
    "archived_at": None,
    "results_url": None,
}
ENDED = MESSAGES | {"processing_status": "ended", "results_url": URL}
COMPLETIONS: dict[str, Any] = {
    "id": "batch_1",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "errors": None,
    "input_file_id": "file-1",
    "completion_window": "24h",
    "status": "in_progress",
    "output_file_id": None,
    "error_file_id": None,
    "created_at": 1_793_700_000,
    "request_counts": {"total": 5, "completed": 2, "failed": 1},
    "metadata": {"muster_batch": "b1"},
}


def counts(**given: int) -> dict[str, dict[str, int]]:
    return {"request_counts": MESSAGES["request_counts"] | {"processing": 0} | given}


def look(batch: Any) -> BatchProgress:
    return anthropic.progress_of(json.dumps(batch).encode(), ACCOUNT)


def see(batch: Any) -> tuple[BatchProgress, list[str]]:
    progress, files = openai.progress_of(json.dumps(batch).encode(), ACCOUNT)
    return progress, list(files)


# Anthropic.


@pytest.mark.parametrize("word", ["in_progress", "canceling", "pondering"])
def test_a_message_batch_that_has_not_ended_runs_and_its_counts_say_nothing(word: str) -> None:
    progress = look(MESSAGES | {"processing_status": word, "cancel_initiated_at": "2026-11-03T10:00:00Z"})
    assert progress == BatchProgress(phase=Phase.RUNNING, word=word, total=5, done=None)


def test_a_message_batch_that_has_ended_says_where_its_results_are() -> None:
    progress = look(ENDED | counts(succeeded=3, errored=2))
    assert progress == BatchProgress(phase=Phase.ENDED, word="ended", total=5, done=5, sources=(URL,))


def test_a_message_batch_may_end_before_its_results_are_there() -> None:
    assert look(ENDED | {"results_url": None}).sources == ()


@pytest.mark.parametrize(
    "shown",
    [
        counts(succeeded=4, expired=1),
        counts(succeeded=4, canceled=1),
        counts(succeeded=5) | {"cancel_initiated_at": "2026-11-03T10:00:00Z"},
    ],
)
def test_every_member_of_a_message_batch_has_a_line_however_it_ended(shown: Any) -> None:
    assert look(ENDED | shown).shortfall is Shortfall.NONE


def test_a_message_batch_without_counts_is_one_all_the_same() -> None:
    progress = look({"processing_status": "ended"})
    assert (progress.phase, progress.total, progress.done) == (Phase.ENDED, None, None)


def test_a_listed_message_batch_is_known_by_its_time_and_its_count() -> None:
    body = json.dumps({"data": [ENDED | counts(succeeded=7), MESSAGES], "has_more": True}).encode()
    page, more = anthropic.page_of(body, ACCOUNT)
    assert page == [
        ListedBatch(id="msgbatch_1", created_at=1_793_700_000.25, requests=7, ended=True),
        ListedBatch(id="msgbatch_1", created_at=1_793_700_000.25, requests=5, ended=False),
    ]
    assert more


# OpenAI and compatible servers.


@pytest.mark.parametrize("word", ["validating", "in_progress", "finalizing", "cancelling", "pondering"])
def test_a_batch_that_has_not_ended_runs_and_counts(word: str) -> None:
    progress, files = see(COMPLETIONS | {"status": word, "output_file_id": "file-2"})
    assert progress == BatchProgress(phase=Phase.RUNNING, word=word, total=5, done=3)
    assert files == []


@pytest.mark.parametrize(
    ("word", "why"),
    [("completed", Shortfall.NONE), ("expired", Shortfall.EXPIRED), ("cancelled", Shortfall.CANCELED)],
)
def test_a_batch_that_has_ended_has_up_to_two_files(word: str, why: Shortfall) -> None:
    progress, files = see(COMPLETIONS | {"status": word, "output_file_id": "file-2", "error_file_id": "file-3"})
    assert (progress.phase, progress.shortfall, files) == (Phase.ENDED, why, ["file-2", "file-3"])
    assert see(COMPLETIONS | {"status": word})[1] == []


@pytest.mark.parametrize("word", ["completed", "expired", "cancelled"])
def test_the_errors_of_a_batch_with_answers_are_not_read_before_its_answers_are_there(word: str) -> None:
    only_errors = COMPLETIONS | {"status": word, "error_file_id": "file-3"}
    assert see(only_errors)[0].answered == COMPLETIONS["request_counts"]["completed"]
    assert see(only_errors)[1] == []
    assert see(only_errors | {"request_counts": {"total": 5, "completed": 0, "failed": 5}})[1] == ["file-3"]


def test_a_batch_that_failed_says_where_and_why() -> None:
    data = [{"code": "x", "message": f"bad {KEY}", "line": 3}, {"code": "empty_file"}, {"message": "words"}, {}]
    progress, files = see(COMPLETIONS | {"status": "failed", "errors": {"object": "list", "data": data}})
    assert (progress.phase, files) == (Phase.FAILED, [])
    assert progress.message == "line 3: bad [key]; empty_file; words; no reason given"


@pytest.mark.parametrize("errors", [None, {}, {"data": None}, {"data": []}])
def test_a_batch_that_failed_without_a_word_failed(errors: Any) -> None:
    progress, _ = see(COMPLETIONS | {"status": "failed", "errors": errors, "request_counts": None})
    assert (progress.phase, progress.message, progress.total) == (Phase.FAILED, "no reason given", None)


def test_thousands_of_reasons_are_cut() -> None:
    data = [{"message": "x" * 100, "line": n} for n in range(10_000)]
    assert len(see(COMPLETIONS | {"status": "failed", "errors": {"data": data}})[0].message) == MAX_MESSAGE


@pytest.mark.parametrize(
    ("metadata", "label"),
    [({"muster_batch": "b1"}, "b1"), ({}, None), (None, None), ([], None), ({"muster_batch": 5}, None)],
)
def test_a_listed_batch_is_known_by_its_file_and_our_label(metadata: Any, label: str | None) -> None:
    body = json.dumps({"object": "list", "data": [COMPLETIONS | {"metadata": metadata}]}).encode()
    page, more = openai.page_of(body, ACCOUNT)
    assert page == [
        ListedBatch(id="batch_1", created_at=1_793_700_000, requests=5, ended=False, file="file-1", label=label)
    ]
    assert not more


@pytest.mark.parametrize("status", ["completed", "failed", "expired", "cancelled"])
def test_a_listed_batch_that_is_over_is_told_and_zero_requests_are_none_that_we_know(status: str) -> None:
    batch = COMPLETIONS | {"status": status, "request_counts": {"total": 0}}
    [found], _ = openai.page_of(json.dumps({"data": [batch]}).encode(), ACCOUNT)
    assert (found.ended, found.requests) == (True, None)


# Both.

GARBAGE = [b"", b"null", b"[]", b"{}", b"<html>", b"\xff", b'{"id":"","data":[{}]}', b'{"data":5,"status":5}']


@pytest.mark.parametrize("body", GARBAGE)
def test_what_cannot_be_read_when_only_looking_was_not_paid(body: bytes) -> None:
    for read in (anthropic.progress_of, anthropic.page_of, openai.progress_of, openai.page_of):
        with pytest.raises(TryLater) as caught:
            read(body, ACCOUNT)
        assert (caught.value.paid, isinstance(caught.value, OutcomeUnknown)) == (Paid.NO, False)


@pytest.mark.parametrize("body", GARBAGE)
def test_a_creation_that_cannot_be_read_may_have_created(body: bytes) -> None:
    with pytest.raises(OutcomeUnknown):
        anthropic.created_of(body, ACCOUNT)
    with pytest.raises(OutcomeUnknown, match="accepted a batch and returned no id"):
        openai.id_of(body, "batch", ACCOUNT)
    assert anthropic.created_of(b'{"id":"x"}', ACCOUNT) == openai.id_of(b'{"id":"x"}', "batch", ACCOUNT) == "x"
