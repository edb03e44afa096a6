"""A disk, a quota or a limit that is reached under a run: that is said, answers wait for room, and none is lost."""

import json
import re
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import COMMAND, PATIENCE, WORKLOADS, line_with

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

SMALL = """
set -e
mount -t tmpfs -o size=3m small "$1"
cd "$1"
muster() { "$PYTHON" -m muster "$@" > "$OUT/$name.out" 2> "$OUT/$name.err" || echo $? > "$OUT/$name.code"; }
name=first; muster ask sim/echo hello --name answered
name=crashed; MUSTER_CRASH_AT=call.opened:1 muster ask sim/echo hello --name crashed
rm .muster/muster.db-shm
dd if=/dev/zero of=fill bs=4096 2> /dev/null || true
name=list; muster runs list --json
name=show; muster runs show answered --json
name=doctor; muster doctor --json
name=ask; muster ask sim/echo again
rm fill
name=after; muster runs list --json
"""


def mounting() -> tuple[str, ...]:
    """Return the command that starts another one which may mount something of its own."""
    refusals = []
    for more in ((), ("--user", "--map-root-user")):
        command = ("unshare", *more, "--mount")
        script = "mount -t tmpfs none /mnt"
        tried = subprocess.run([*command, "bash", "-c", script], capture_output=True, text=True)
        if tried.returncode == 0:
            return command
        refusals.append(tried.stderr.strip())
    pytest.fail(f"this test mounts a small disk, which this system refuses: {refusals}")


def test_on_a_full_disk_everything_can_be_read_and_it_is_said_that_the_disk_is_full(tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    for folder in (disk, out):
        folder.mkdir()
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "OUT": str(out), "PYTHON": sys.executable}
    command = [*mounting(), "bash", "-c", SMALL, "small", str(disk)]
    subprocess.run(command, env=environment, check=True, timeout=120)

    def told(name: str) -> tuple[int, str, str]:
        code = out / f"{name}.code"
        texts = [(out / f"{name}.{end}").read_text() for end in ("out", "err")]
        return int(code.read_text()) if code.exists() else 0, texts[0], texts[1]

    code, listed, err = told("list")
    assert (code, {run["name"]: run["state"] for run in json.loads(listed)["data"]}) == (
        0,
        {"answered": "completed", "crashed": "running"},
    )
    assert "the disk is full" in err
    assert "still shown as running" in err
    code, shown, err = told("show")
    assert (code, json.loads(shown)["data"]["result"]["text"]) == (0, "hello")
    assert "the disk is full" in err
    code, found, _ = told("doctor")
    findings = json.loads(found)["data"]["findings"]
    assert code == 3
    assert {finding["subject"] for finding in findings if finding["state"] == "broken"} == {"home"}
    assert "No space left on device" in next(f["words"] for f in findings if f["subject"] == "home")
    code, _, err = told("ask")
    assert code == 4
    assert "free some space" in err
    code, listed, err = told("after")
    states = {run["name"]: run["state"] for run in json.loads(listed)["data"] if run["name"]}
    assert (code, states, err) == (0, {"answered": "completed", "crashed": "interrupted"}, "")


FILLING = """
set -e
mount -t tmpfs -o size=3m small "$1"
cp -r "$2"/. "$1"
cd "$1"
muster() { "$PYTHON" -m muster "$@"; }
while read -r command; do eval "$command"; done
"""

RESUME = """"$PYTHON" -m muster runs resume triaged > /dev/null & PID=$!"""
FILL = """dd if=/dev/zero of=fill bs=4096 2> /dev/null || true"""
STATE = """muster runs show triaged --json"""
SUBMIT = """
import asyncio, muster
async def main():
    async with muster.open() as m:
        spec = {"agent": "anthropic/claude-haiku-5-5", "tickets": [f"ticket {n}" for n in range(40)]}
        await m.submit("triage", spec, name="triaged", concurrency=8)
asyncio.run(main())
"""


def prepare(folder: Path) -> None:
    """Write what it takes to submit the run."""
    (folder / "work.py").write_text(WORKLOADS)
    served = '[serve]\nmodels = ["anthropic/claude-haiku-5-5"]\n'
    (folder / "muster.toml").write_text(f'[workloads]\nimport = ["work"]\n{served}')
    (folder / "submit.py").write_text(SUBMIT)


def environment_of(home: Path, rehearsal: ForkedRehearsal) -> dict[str, str]:
    """Return the variables of commands that ask a rehearsal server."""
    asked = {"ANTHROPIC_BASE_URL": rehearsal.anthropic, "ANTHROPIC_API_KEY": "rehearsal"}
    return {**ENVIRONMENT, "HOME": str(home), "PYTHON": sys.executable, **asked}


class SmallDisk:
    """A shell whose folder is a disk of 3 MB, with a run of 40 calls that was submitted."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def do(self, command: str) -> None:
        """Let the shell begin a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def line_with(self, *words: str) -> str:
        """Wait for a line of an error or of progress."""
        return line_with(self._process.stderr, *words)

    def run(self) -> Any:
        """Return the run as it is stored."""
        self.do(STATE)
        return self.answer()["data"]

    def answer(self) -> Any:
        """Return what a command answers in JSON."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def exit_code(self) -> int:
        """Wait until the run is not driven any more, and return the exit code of the command."""
        self.do("wait $PID && echo code 0 >&2 || echo code $? >&2")
        return int(self.line_with("code ").split()[1])


@contextmanager
def small_disk(tmp_path: Path, rehearsal: ForkedRehearsal) -> Iterator[SmallDisk]:
    """Mount a small disk, and submit a run there that asks a rehearsal server."""
    disk, files = tmp_path / "disk", tmp_path / "files"
    for folder in (disk, files):
        folder.mkdir()
    prepare(files)
    environment = environment_of(tmp_path, rehearsal)
    command = [*mounting(), "bash", "-c", FILLING, "small", str(disk), str(files)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        shell = SmallDisk(process)
        try:
            shell.do('"$PYTHON" submit.py')
            yield shell
            shell.do("exit 0")
            process.wait(PATIENCE)
        finally:
            process.kill()


def test_answers_wait_for_room_on_a_full_disk_and_none_is_paid_twice(tmp_path: Path) -> None:
    with ForkedRehearsal(latency_ms=2000) as rehearsal, small_disk(tmp_path, rehearsal) as shell:
        shell.do(RESUME)
        shell.line_with("8 on the wire")
        shell.do(FILL)
        told = shell.line_with("the disk is full")
        begun = rehearsal.audit().calls
        shell.do("rm fill")
        assert shell.exit_code() == 0
        run, paid = shell.run(), rehearsal.audit().calls
    waited = re.search(r"; (\d+) answers wait in memory, and no calls are started\. Free some space", told)
    assert waited is not None, told
    assert 8 <= int(waited[1]) <= begun < 40  # those on the wire, and those that took their places before it was full
    assert (run["state"], run["calls"]["done"], run["calls"]["uncertain"], paid) == ("completed", 40, 0, 40)


@contextmanager
def limited(process: int, log: Path) -> Iterator[None]:
    """Let no file of a process grow beyond the size that its log has now."""
    resource.prlimit(process, resource.RLIMIT_FSIZE, (log.stat().st_size, resource.RLIM_INFINITY))
    yield
    resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextmanager
def over_quota(process: int, log: Path) -> Iterator[None]:
    """Have the system refuse every write to files, as it does when the quota of a user is used up."""
    inject = ("-e", "trace=pwrite64", "-e", "inject=pwrite64:error=EDQUOT")  # no other writes are made at a place
    command = ("strace", "-f", "-o", "/dev/null", "-p", str(process), *inject)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        line_with(tracer.stderr, "attached")
        yield
        tracer.terminate()
        tracer.communicate(timeout=PATIENCE)


@pytest.mark.parametrize(
    ("refusing", "why", "way"),
    [
        pytest.param(limited, "this process may make no file larger than", "Raise the limit (prlimit", id="limit"),
        pytest.param(over_quota, "the disk quota is used up", "raise the quota", id="quota", marks=pytest.mark.chaos),
    ],
)
def test_answers_wait_while_the_store_may_not_grow_and_none_is_paid_twice(
    tmp_path: Path, refusing: Callable[[int, Path], AbstractContextManager[None]], why: str, way: str
) -> None:
    prepare(tmp_path)
    pipe = subprocess.PIPE
    with ForkedRehearsal(latency_ms=1000) as rehearsal:
        environment = environment_of(tmp_path, rehearsal)
        subprocess.run([sys.executable, "submit.py"], cwd=tmp_path, env=environment, check=True, timeout=PATIENCE)
        command = (*COMMAND, "runs", "resume", "triaged", "--json")
        with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
            line_with(process.stderr, "8 on the wire")
            with refusing(process.pid, tmp_path / ".muster" / "muster.db-wal"):
                told = line_with(process.stderr, "answers wait in memory")
                begun = rehearsal.audit().calls
            out, _ = process.communicate(timeout=PATIENCE)
        paid = rehearsal.audit().calls
    assert why in told
    assert way in told
    assert begun < 40
    run = json.loads(out)["data"]
    assert (run["state"], run["calls"]["done"], run["calls"]["uncertain"], paid) == ("completed", 40, 0, 40)


@pytest.mark.chaos
def test_a_run_that_waits_for_room_ends_when_it_is_told_twice(tmp_path: Path) -> None:
    with ForkedRehearsal(latency_ms=1000) as rehearsal, small_disk(tmp_path, rehearsal) as shell:
        shell.do(RESUME)
        shell.line_with("8 on the wire")
        shell.do(FILL)
        shell.line_with("wait in memory")
        shell.do("kill -INT $PID")
        shell.line_with("not stored yet are waited for")
        shell.do("kill -INT $PID")
        shell.line_with("answers, unless stored by now; what they cost is uncertain")
        assert shell.exit_code() == 4
        shell.do("rm fill")
        shell.do(RESUME)
        assert shell.exit_code() == 0
        run, paid = shell.run(), rehearsal.audit().calls
    assert (run["state"], run["calls"]["done"], paid) == ("completed", 40, 40 + run["calls"]["uncertain"])


@pytest.mark.chaos
def test_a_run_that_is_started_on_a_full_disk_is_refused_while_another_waits_for_room(tmp_path: Path) -> None:
    with ForkedRehearsal(latency_ms=1000) as rehearsal, small_disk(tmp_path, rehearsal) as shell:
        shell.do(RESUME)
        shell.line_with("8 on the wire")
        shell.do(FILL)
        shell.line_with("wait in memory")
        shell.do("muster ask sim/echo hello && echo asked >&2 || echo refused $? >&2")
        assert "free some space" in shell.line_with("then resume")
        assert shell.line_with("refused ", "4")
        assert shell.run()["state"] == "running"
        shell.do("rm fill")
        assert shell.exit_code() == 0


SERVE = """"$PYTHON" -m muster serve --port 0 --json & PID=$!"""


def post(url: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Send a request as a client does that does not wait long."""
    headers = {"content-type": "application/json"}
    asked = urllib.request.Request(url, json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(asked, timeout=15) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_server_refuses_at_once_what_it_cannot_store_and_does_it_not_later(tmp_path: Path) -> None:
    with ForkedRehearsal() as rehearsal, small_disk(tmp_path, rehearsal) as shell:
        shell.do(SERVE)
        url = shell.answer()["url"]
        question = {"agent": "anthropic/claude-haiku-5-5", "prompt": "hello"}
        assert post(f"{url}/api/ask", question | {"agent": "nobody"})[0] == 400
        shell.do(FILL)
        shell.do("echo filled >&2")
        shell.line_with("filled")
        for path, body in {"ask": question, "runs/triaged/cancel": {}}.items():
            status, said = post(f"{url}/api/{path}", body)
            assert (status, "the disk is full" in said["error"]["message"]) == (503, True), path
        shell.do("rm fill; echo freed >&2")
        shell.line_with("freed")
        deadline = time.monotonic() + PATIENCE
        while (status := post(f"{url}/api/ask", question | {"prompt": "hello again"})[0]) != 202:
            assert (status, time.monotonic() < deadline) == (503, True)  # what waits looks for room now and then
            time.sleep(0.5)
        shell.do("kill $PID; wait $PID; muster runs list --json")
        asked = [run for run in shell.answer()["data"] if run["workload"] == "ask"]
    assert len(asked) == 1
