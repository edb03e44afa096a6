"""What is seen of runs and batches while they go on, and how times are written and read."""

from dataclasses import replace
from datetime import datetime

import pytest

from muster.app import Patience
from muster.cli.options import patience_of
from muster.cli.terminal.display import LineDisplay
from muster.cli.terminal.progress import (
    ProgressState,
    batch_progress,
    line,
    waiting,
)
from muster.cli.terminal.times import rough, since, span
from muster.domain.batch import Batch, BatchEndpoint, BatchState
from muster.domain.errors import BadArgument
from muster.domain.ids import BatchId

from .shell import Shell

ENDPOINT = BatchEndpoint(kind="anthropic", base_url="https://example.invalid", account="a", variable="KEY")
BATCH = Batch(
    id=BatchId("b1"),
    endpoint=ENDPOINT,
    state=BatchState.RUNNING,
    requests=6000,
    bytes=1,
    tariffs={},
    created_at=1000.0,
    submitted_at=1010.0,
    nonce="n",
    word="in_progress",
)


def test_one_batch_is_named_with_its_state_and_many_are_counted() -> None:
    counted = replace(BATCH, done=1200)
    assert waiting([BATCH]) == "waiting for batch b1: in_progress"
    assert waiting([counted]) == "waiting for batch b1: in_progress, 1,200 of 6,000 done"
    assert waiting([counted, BATCH]) == "waiting for 2 batches: 1,200 of 12,000 done"
    assert waiting([BATCH, BATCH]) == "waiting for 2 batches: 12,000 calls"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "batch b1: in_progress, 6,000 calls (3 min)"),
        ({"done": 1200}, "batch b1: 1,200 of 6,000 calls done, in_progress (3 min)"),
        ({"cancel_requested": True}, "batch b1: being canceled, 6,000 calls (3 min)"),
        ({"state": BatchState.SENT}, "batch b1: submitted, not confirmed yet, 6,000 calls (3 min)"),
        ({"word": ""}, "batch b1: running, 6,000 calls (3 min)"),
    ],
)
def test_a_batch_fits_on_one_line(changes: dict[str, object], words: str) -> None:
    batch = replace(BATCH, **changes)  # type: ignore[arg-type]
    assert line(batch_progress(batch), now=1010.0 + 200) == words


def test_lines_tell_changes_and_not_that_time_goes_by(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LineDisplay()
    for _ in range(3):
        lines.show(ProgressState(title="run 1", words="$0.00", done=1, total=2, waits="waiting", since=0.0))
    lines.show(ProgressState(title="run 1", words="$0.00", done=2, total=2), last=True)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert told[0].startswith("run 1: 1 of 2 calls done, $0.00; waiting (")
    assert told[1] == "run 1: 2 of 2 calls done, $0.00"


@pytest.mark.parametrize(
    ("seconds", "written", "roughly"),
    [
        (-1.0, "0.0 s", "0 s"),
        (3.21, "3.2 s", "3 s"),
        (59.0, "59 s", "59 s"),
        (180.0, "3 min", "3 min"),
        (7500.0, "2 h 5 min", "2 h"),
        (7200.0, "2 h", "2 h"),
        (90_000.0, "1 d 1 h", "1 d"),
        (172_800.0, "2 d", "2 d"),
    ],
)
def test_spans_are_no_finer_than_needed(seconds: float, written: str, roughly: str) -> None:
    assert (span(seconds), rough(seconds)) == (written, roughly)


def test_windows_begin_so_long_ago_or_at_a_date() -> None:
    now = 10_000_000.0
    assert [since(given, now) for given in ("30m", "24h", "7d")] == [now - 1800, now - 86_400, now - 604_800]
    assert since("999999999w", now) == 0
    assert since("2026-01-31", now) == datetime(2026, 1, 31).astimezone().timestamp()
    assert since("2026-01-31T12:00:00+00:00", now) == 1_769_860_800


@pytest.mark.parametrize("given", ["", "7", "d", "-7d", "1.5h", "yesterday", "2026-13-01"])
def test_a_window_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(BadArgument, match="must be a duration or a date, not"):
        since(given, 0.0)


def test_patience_is_the_engines_own_unless_something_is_given() -> None:
    assert patience_of() == Patience()
    given = patience_of(linger=0, poll_interval=400, deadline=1, max_parked=1)
    assert (given.linger, given.poll_first, given.poll_longest, given.deadline, given.max_parked) == (0, 400, 400, 1, 1)
    assert patience_of(poll_interval=0.05).poll_longest == 300


def test_the_help_tells_the_engines_own_values(shell: Shell) -> None:
    words = " ".join(shell.muster("ask", "--help").out.split())
    own = Patience()
    for value in (own.linger, own.poll_first, own.deadline, own.max_parked):
        assert f"[default: {value:.0f}]" in words
