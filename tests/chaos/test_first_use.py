"""The first use of the types of all kinds of work, in many threads at once: no process dies of it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("processes", [20, pytest.param(200, marks=pytest.mark.chaos)])
def test_threads_that_read_specs_for_the_first_time_end_no_process(processes: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.first_use", str(processes)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
