"""Which batch of a provider's list is ours: decided purely, never guessed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from muster.domain.batch import Batch, BatchEndpoint, BatchState, KnownIds, ListedBatch, confusable
from muster.domain.ids import BatchId
from muster.engine.batches.resolve import MAX_CREATE_SECONDS, SKEW, Adopt, Assumed, Judgment, Nothing, Several
from muster.engine.batches.resolve import judge as judge_list

ANTHROPIC = BatchEndpoint(kind="anthropic", base_url="http://127.0.0.1:1", account="a", variable="K")
SENT = 1_800_000_000.0
BATCH = Batch(
    id=BatchId("b1"),
    endpoint=ANTHROPIC,
    state=BatchState.SENT,
    requests=40,
    bytes=1,
    tariffs={},
    created_at=SENT - 1,
    sent_at=SENT,
    nonce="n",
)
OPENAI = replace(BATCH, endpoint=replace(ANTHROPIC, kind="openai"), file="file-1")


def judge(
    batch: Batch, listed: Sequence[ListedBatch], known: frozenset[str], assumed: frozenset[str] = frozenset()
) -> Judgment:
    """Judge a list as the batch's provider writes it."""
    return judge_list(batch, listed, KnownIds(known, assumed), labeled=batch.endpoint.kind == "openai")


def found(
    name: str, *, at: float = SENT, requests: int | None = 40, file: str | None = None, label: str | None = None
) -> ListedBatch:
    return ListedBatch(id=name, created_at=at, requests=requests, ended=False, file=file, label=label)


def test_the_only_unknown_batch_that_fits_is_adopted_but_not_for_sure() -> None:
    judgment = judge(BATCH, [found("x"), found("known"), found("other", requests=41)], frozenset({"known"}))
    assert isinstance(judgment, Adopt)
    assert (judgment.id, judgment.sure) == ("x", False)


def test_several_that_fit_are_not_told_apart() -> None:
    judgment = judge(BATCH, [found("x"), found("y")], frozenset())
    assert isinstance(judgment, Several)
    assert [each.id for each in judgment.found] == ["x", "y"]


def test_one_that_another_batch_was_taken_for_may_be_ours_until_its_end_tells() -> None:
    assert judge(BATCH, [found("x")], frozenset(), frozenset({"x"})) == Assumed(id="x")
    free = judge(BATCH, [found("x"), found("y")], frozenset(), frozenset({"x"}))
    assert isinstance(free, Adopt)
    assert free.id == "y"
    assert isinstance(judge(BATCH, [found("x", requests=41)], frozenset(), frozenset({"x"})), Nothing)


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({}, True),  # its create is under way
        ({"grace_until": SENT + 10}, True),
        ({"grace_until": SENT}, False),
        ({"requests": 41}, False),
        ({"state": BatchState.RUNNING}, False),
        ({"id": BATCH.id}, False),
        ({"endpoint": replace(ANTHROPIC, kind="openai")}, False),
        ({"endpoint": replace(ANTHROPIC, account="b")}, False),
    ],
)
def test_only_creates_that_could_be_taken_for_each_other_wait(changes: dict[str, Any], waits: bool) -> None:
    other = replace(BATCH, **{"id": BatchId("b2")} | changes)
    assert confusable(BATCH, other, SENT) is waits


def test_one_that_was_rejected_is_not_taken_again() -> None:
    batch = replace(BATCH, rejected=("x",))
    assert isinstance(judge(batch, [found("x")], frozenset()), Nothing)
    assert judge(batch, [found("x"), found("y")], frozenset()) == judge(BATCH, [found("y")], frozenset())


@pytest.mark.parametrize(
    ("at", "fits"),
    [
        (SENT - SKEW - 1, False),
        (SENT - SKEW, True),
        (SENT + MAX_CREATE_SECONDS + SKEW, True),
        (SENT + MAX_CREATE_SECONDS + SKEW + 1, False),
    ],
)
def test_the_time_must_fit_as_far_as_clocks_agree(at: float, fits: bool) -> None:
    assert isinstance(judge(BATCH, [found("x", at=at)], frozenset()), Adopt) is fits


def test_a_list_without_counts_goes_by_time() -> None:
    assert isinstance(judge(BATCH, [found("x", requests=None)], frozenset()), Adopt)


@pytest.mark.parametrize(("file", "label"), [("file-1", None), (None, "b1")])
def test_where_the_provider_keeps_our_word_it_is_sure(file: str | None, label: str | None) -> None:
    judgment = judge(OPENAI, [found("z"), found("x", requests=7, file=file, label=label)], frozenset())
    assert isinstance(judgment, Adopt)
    assert (judgment.id, judgment.sure) == ("x", True)


def test_where_the_provider_keeps_our_word_nothing_else_fits() -> None:
    assert isinstance(judge(OPENAI, [found("x"), found("y", file="file-2", label="b2")], frozenset()), Nothing)
