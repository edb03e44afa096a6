"""Errors as sentences."""

import pytest

from muster.domain.errors import RunFailed


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("run r1 was canceled", "run r1 was canceled"),
        ("budget of run r1: $1.00 of $1.00 is spent", "run r1 was canceled: its budget: $1.00 of $1.00 is spent"),
        ("budget of run r2: $1.00 of $1.00 is spent", "run r1 was canceled: budget of run r2: $1.00 of $1.00 is spent"),
        ("the server is gone", "run r1 was canceled: the server is gone"),
    ],
)
def test_a_run_is_named_once(message: str, told: str) -> None:
    assert RunFailed("r1", "canceled", "canceled", {"message": message}).message == told
