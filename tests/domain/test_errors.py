"""Errors as sentences."""

import pytest

from muster.domain.errors import RetriesExhausted, RunFailed, Unreachable


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("run r1 was canceled", "run r1 was canceled"),
        (
            "budget of run r1 does not cover this call: no",
            "run r1 was canceled: its budget does not cover this call: no",
        ),
        ("budget of run r1: $1.00 of $1.00 is spent", "run r1 was canceled: its budget: $1.00 of $1.00 is spent"),
        ("budget of run r2: $1.00 of $1.00 is spent", "run r1 was canceled: budget of run r2: $1.00 of $1.00 is spent"),
        ("the server is gone", "run r1 was canceled: the server is gone"),
    ],
)
def test_a_run_is_named_once(message: str, told: str) -> None:
    assert RunFailed("r1", "canceled", "canceled", {"message": message}).message == told


def test_a_run_that_timed_out_says_so_once() -> None:
    error = {"message": "run r1 exceeded its time limit of 5 s"}
    assert RunFailed("r1", "timeout", "timeout", error).message == "run r1 timed out: its time limit is 5 s"


def test_what_cannot_be_reached_suggests_the_command_that_checks_the_network() -> None:
    (hint,) = Unreachable("https://example.org: cannot connect").suggestions
    assert "muster doctor" in hint
    assert RetriesExhausted("failed", last=Unreachable("x")).suggestions == (hint,)
