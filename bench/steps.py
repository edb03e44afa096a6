"""What the same small program costs with Muster and with DBOS, and what each does when it is killed midway."""

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import ChildDied, run_child, started

PYTHONS = {"muster": Path(sys.executable), "dbos": Path(".venv-dbos/bin/python")}  # its packages exclude some of ours


def kinds() -> list[str]:
    """Return what can be measured here."""
    return [kind for kind, python in PYTHONS.items() if python.exists()]


class Letters:
    """A model that answers at once and keeps a line for every answer, which is what one would pay for."""

    def __init__(self, folder: Path) -> None:
        self._paid = (folder / "paid.txt").open("a", encoding="utf-8", buffering=1)

    def answer(self, letter: str) -> str:
        """Answer one letter."""
        self._paid.write(letter + "\n")
        return '{"label": "other", "urgent": false}'


@contextmanager
def finished(letters: Letters) -> Iterator[None]:
    """Measure the work in the block and print its figures."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    print(json.dumps({"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}))


def measured(kind: str, letters: int, folder: Path) -> dict[str, float]:
    """Do the work once in a process of its own."""
    folder.mkdir(parents=True)
    return run_child(_command(kind, letters, folder))


def killed(kind: str, letters: int, folder: Path) -> int:
    """Kill the work when half of it was answered, start it again, and return how many answers were paid twice."""
    folder.mkdir(parents=True)
    command, paid = _command(kind, letters, folder), folder / "paid.txt"
    with started(command) as child:
        while not paid.exists() or len(paid.read_text(encoding="utf-8").splitlines()) < letters // 2:
            if child.process.poll() is not None:
                raise ChildDied(f"{kind} ended before it could be killed: {child.output()}")
        child.process.send_signal(signal.SIGKILL)
        child.process.wait()
    run_child(command)
    return len(paid.read_text(encoding="utf-8").splitlines()) - letters


def _command(kind: str, letters: int, folder: Path) -> list[str]:
    return [str(PYTHONS[kind]), "-m", f"bench.steps_{kind}", str(letters), str(folder)]
