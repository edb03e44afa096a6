"""The benchmark: what has died is an error, and what was measured before is not lost."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.__main__ import measured
from bench.figures import Figure, child
from bench.processes import ChildDied, run_child, serving, started, wait_for

from muster.testing.sim import RehearsalProcess


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home)}


def test_a_child_that_was_killed_is_an_error_with_its_signal_and_last_lines() -> None:
    program = "import os, sys; print('so far', file=sys.stderr, flush=True); os.kill(os.getpid(), 11)"
    with pytest.raises(ChildDied, match=r"was ended by SIGSEGV\n  so far"):
        run_child([sys.executable, "-c", program])


def test_a_child_that_fails_is_an_error_with_what_it_said() -> None:
    with pytest.raises(ChildDied, match=r"exited with 1(.|\n)*ZeroDivisionError"):
        run_child([sys.executable, "-c", "1 / 0"])


def test_a_child_that_prints_no_figures_is_an_error_with_what_it_said() -> None:
    program = "import sys; print('figures: none'); print('a warning', file=sys.stderr)"
    with pytest.raises(ChildDied, match=r"exited with 0\n  it printed no figures:\n  figures: none\n  a warning"):
        run_child([sys.executable, "-c", program])


def test_of_several_processes_the_first_that_dies_is_an_error_and_ends_the_others() -> None:
    lives = "import time; time.sleep(600)"
    dies = "import os, sys; print('so far', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"
    with contextlib.ExitStack() as stack:
        programs = [[sys.executable, "-c", program] for program in (lives, dies, lives)]
        first, second, third = (stack.enter_context(started(program)) for program in programs)
        with pytest.raises(ChildDied, match=r"was ended by SIGKILL\n  so far"):
            wait_for([first, second, third])
    assert first.process.returncode is not None
    assert third.process.returncode is not None


def test_a_child_whose_rehearsal_server_has_died_is_not_waited_for() -> None:
    with RehearsalProcess() as sim:
        program = f"import os, time; os.kill({sim.pid}, 11); time.sleep(600)"
        with pytest.raises(ChildDied, match="RehearsalProcess was ended by SIGSEGV beside -c import os"):
            run_child([sys.executable, "-c", program], beside=sim)


def test_what_a_child_has_measured_is_told_at_once() -> None:
    told: list[str] = []
    child(told.append, "programs", "bare", 1)
    assert re.fullmatch(r"measured: seconds \d\.\d{3}, cpu \d\.\d{3}", told[0])


@pytest.mark.chaos
def test_nobody_waits_for_a_server_that_has_died(tmp_path: Path) -> None:
    async def for_ever() -> None:
        server.process.kill()
        await asyncio.Event().wait()

    with (
        pytest.raises(ChildDied, match=r"muster serve .* was ended by SIGKILL"),
        serving(tmp_path, environment(tmp_path)) as server,
    ):
        asyncio.run(server.beside(for_ever()))


@pytest.mark.chaos
def test_a_server_that_does_not_start_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text("[agents")
    with pytest.raises(ChildDied, match=r"exited with (.|\n)*muster.toml"), serving(tmp_path, environment(tmp_path)):
        pass


def test_figures_come_as_they_are_measured_and_stay_when_another_part_fails() -> None:
    told: list[str] = []

    def part(name: str, *, fails: bool = False) -> Callable[[Callable[[str], None]], Iterator[Figure]]:
        def measure(say: Callable[[str], None]) -> Iterator[Figure]:
            told.append(name)
            yield Figure(name=name, value=1.0, unit="s", goal="", held=True)
            if fails:
                raise ChildDied("the server was ended by SIGSEGV")

        return measure

    failed: list[str] = []
    figures = measured({"one": part("one", fails=True), "two": part("two")}, failed)
    assert next(figures).name == "one"
    assert told == ["one"]
    assert [figure.name for figure in figures] == ["two"]
    assert failed == ["one: the server was ended by SIGSEGV"]
