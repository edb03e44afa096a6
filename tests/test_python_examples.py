"""The programs in examples/python do what they say, are short, and survive being killed at every point."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.testing import FakeAgent, kill_everywhere
from tests.variants import first_of

EXAMPLES = Path(__file__).parent.parent / "examples" / "python"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
PRINTED = {
    "triage": """\
sorted mail/0
sorted mail/1
sorted mail/2
billing      Your invoice is wrong.
delivery   ! Where is my parcel?
other        Good morning!
""",
    "tool_loop": """\
Sorry! Your parcel is on its way, and we refund 20 % of the postage.
answer/001 find_order({'number': '4711'})
answer/002 refund({'number': '4711', 'percent': 20})
answer/003 remember({'note': '4711 was late and is refunded'})
answer/004
""",
    "map_reduce": "A storm came, and bread got dearer. (chapters that failed: [1])\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copied(tmp_path / "python")


def copied(folder: Path) -> Path:
    """Copy the examples."""
    return shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns(".muster", "__pycache__"))


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


def environment(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}


def test_there_are_five_of_thirty_to_eighty_lines() -> None:
    assert PROGRAMS == ["map_reduce", "test_triage", "tool_loop", "triage", "web_app"]
    lengths = {name: len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) for name in PROGRAMS}
    assert all(30 <= length <= 80 for length in lengths.values()), lengths


def started(folder: Path, name: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    words, around = [sys.executable, f"{name}.py"], environment(folder) | variables
    return subprocess.run(words, cwd=folder, env=around, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", PRINTED)
async def test_a_program_that_is_killed_and_started_again_asks_nothing_twice(folder: Path, name: str) -> None:
    assert started(folder, name, MUSTER_CRASH_AT="call.settled:2").returncode == -signal.SIGKILL
    done = started(folder, name)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(PRINTED[name].splitlines())
    async with muster.open(project=folder) as m:
        roots = await m.runs.page(roots=True)
        assert len(roots) == 1
        runs = await m.runs.page()
        attempts = [len(call.attempts) for run in runs for call in await m.runs.attempts(run.id)]
        assert set(attempts) == {1}


@pytest.mark.parametrize(("chosen", "passed"), first_of([("not killed", 3), ("", 4)], several=True))
def test_the_tests_of_a_user_pass(folder: Path, chosen: str, passed: int) -> None:
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        str(folder),
    ]
    done = subprocess.run(
        [*words, "test_triage.py", "-k", chosen],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{passed} passed" in done.stdout


def desk() -> dict[str, Any]:
    def tool(name: str, **arguments: Any) -> dict[str, Any]:
        return {"tool_calls": [{"name": name, "arguments": arguments}]}

    answers: dict[str, Any] = {
        "^noted": "Sorry!",
        "refunded": tool("remember", note="late"),
        "days_late": tool("refund", number="4711", percent=20),
        "parcel": tool("find_order", number="4711"),
    }
    return {"desk": FakeAgent(answers, cost_usd="0.01")}


def writer() -> dict[str, Any]:
    return {"writer": FakeAgent({"storm": "A storm.", "bread": "Bread."}, otherwise="Nothing.", cost_usd="0.001")}


@pytest.mark.chaos
def test_a_loop_of_tools_survives_being_killed_anywhere() -> None:
    import tool_loop

    report = kill_everywhere(tool_loop.answer, tool_loop.QUESTION, agents=desk, budget_usd="1.00")
    assert report.result == "Sorry!"
    assert {"call.answered:4", "store.after_commit:1"} <= set(report.kills)  # the fourth turn answers


@pytest.mark.chaos
def test_children_survive_being_killed_anywhere() -> None:
    import map_reduce

    book = map_reduce.Book(("The storm broke the mast.", ""))
    report = kill_everywhere(map_reduce.report, book, agents=writer, budget_usd="1.00")
    assert report.result == {"text": "A storm.", "failed": [1]}
    assert {"run.claimed:3", "call.answered:2"} <= set(report.kills)  # of the run and both children


@contextmanager
def served(folder: Path, **variables: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Start the service, and give its process and its port; it may not answer yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "uvicorn", "web_app:app", "--port", str(port), "--log-level", "warning"]
    with subprocess.Popen(words, cwd=folder, env=environment(folder) | variables) as server:
        try:
            yield server, port
        finally:
            server.kill()


def listening(server: "subprocess.Popen[bytes]", port: int) -> int:
    """Wait until a service answers, and return its port."""
    until = time.monotonic() + 60
    while not _answers(port):
        assert server.poll() is None
        assert time.monotonic() < until
    return port


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def asked(port: int, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"} if data else {}
    )
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


POINTS = ("run.claimed", "run.before_release", "store.before_commit", "store.after_commit",
          "call.before_open", "call.opened", "call.answered", "call.settled")  # fmt: skip
DEATHS = (OSError, http.client.HTTPException)  # of a service that is killed before or in its answer
MAIL = {"id": "monday", "mail": ["Where is my parcel?", "Your invoice is wrong."]}


def killed(folder: Path, point: str) -> bool:
    """Let the service do its work until it is killed at a point; False where it is done before it gets there."""
    with served(folder, MUSTER_CRASH_AT=point) as (server, port):
        if not _comes_up(server, port):
            return True
        with suppress(*DEATHS):  # it may die before it has answered
            asked(port, "/mail", MAIL)
        until = time.monotonic() + 60
        while server.poll() is None:
            with suppress(*DEATHS):
                if asked(port, "/mail/monday")[1].get("state") == "completed":
                    server.terminate()  # what comes after the end of the run comes now
                    break
            assert time.monotonic() < until
        return server.wait(60) == -signal.SIGKILL


def _comes_up(server: "subprocess.Popen[bytes]", port: int) -> bool:
    until = time.monotonic() + 60
    while server.poll() is None and not _answers(port):
        assert time.monotonic() < until
    return server.poll() is None


async def require_continued(folder: Path) -> None:
    """Start the service twice, side by side: both tell of the one run, which comes to its end and paid once."""
    with served(folder) as one, served(folder) as other:
        ports = [listening(*one), listening(*other)]
        (status, first), (_, second) = [asked(port, "/mail", MAIL) for port in ports]
        assert (status, first) == (202, second)
        assert asked(ports[0], "/mail", {"id": "monday", "mail": ["Another letter."]})[0] == 409
        until = time.monotonic() + 60
        while (shown := asked(ports[1], "/mail/monday")[1])["state"] != "completed":
            assert time.monotonic() < until, shown
        assert [letter["label"] for letter in shown["sorted"]] == ["delivery", "billing"]
    async with muster.open(project=folder) as m:
        assert len(await m.runs.page()) == 1


async def test_a_service_goes_on_with_what_one_that_was_killed_has_left(folder: Path) -> None:
    assert killed(folder, "call.settled:1")
    await require_continued(folder)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_a_service_that_is_killed_at_every_point_goes_on(tmp_path: Path) -> None:
    kills = []
    for point in POINTS:
        for occurrence in count(1):
            place = copied(tmp_path / f"{point}-{occurrence}")
            if not killed(place, f"{point}:{occurrence}"):
                break
            await require_continued(place)
            kills.append(f"{point}:{occurrence}")
    assert {"call.settled:2", "run.before_release:1", "store.after_commit:3"} <= set(kills)
