"""Ctrl-C and SIGTERM on a run that is being driven: everything is kept, and it can be resumed."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import Shell, line_with

MODEL = "anthropic/claude-haiku-5-5"
NEVER = {"script": [{"fault": "timeout", "nth": 3, "times": "always"}]}


def submit(shell: Shell, number: int) -> str:
    shell.declare_workloads()
    spec = {"agent": MODEL, "tickets": [f"ticket {i}" for i in range(number)]}
    return shell.submit("triage", spec, concurrency=2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_for_calls_on_the_wire(shell: Shell, number: signal.Signals) -> None:
    with ForkedRehearsal(latency_ms=2000) as rehearsal:
        shell.use(rehearsal)
        run = submit(shell, 8)
        with shell.start("runs", "resume", run) as process:
            line_with(process.stderr, "2 on the wire")
            process.send_signal(number)
            _, told = process.communicate()
        stopped = shell.run(run)
        resumed = shell.muster("runs", "resume", run, "--json")
        paid = rehearsal.audit().calls
    assert process.returncode == 4
    assert "on the wire are waited for; press Ctrl-C again to cut them (their cost becomes uncertain)" in told
    assert f"run {run} is interrupted; continue with: muster runs resume {run}" in told
    assert "Traceback" not in told
    assert (stopped["state"], stopped["calls"]["uncertain"]) == ("interrupted", 0)
    assert resumed.data()["state"] == "completed"
    assert paid == 8


@pytest.mark.parametrize("numbers", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)])
def test_the_second_signal_cuts_them_and_books_them_as_uncertain(
    shell: Shell, numbers: tuple[signal.Signals, signal.Signals]
) -> None:
    with ForkedRehearsal(faults=NEVER) as rehearsal:
        shell.use(rehearsal)
        run = submit(shell, 6)
        with shell.start("runs", "resume", run) as process:
            line_with(process.stderr, ": 2 of ", "2 on the wire")
            process.send_signal(numbers[0])
            line_with(process.stderr, "press Ctrl-C again")
            process.send_signal(numbers[1])
            _, told = process.communicate()
        stopped = shell.run(run)
        rehearsal.faults({})
        resumed = shell.muster("runs", "resume", run)
        paid = rehearsal.audit().calls
    assert process.returncode == 4
    assert "cutting 2 calls" in told
    assert (stopped["state"], stopped["calls"]["uncertain"], stopped["calls"]["done"]) == ("interrupted", 2, 2)
    assert stopped["uncertain_usd"] > 0
    assert resumed.code == 0
    assert "2 replies reused, 2 calls were uncertain" in resumed.err
    assert paid <= 6 + 2


def test_a_terminal_that_is_gone_cuts_what_is_under_way_and_leaves_nothing_at_work(shell: Shell) -> None:
    mark = f"hang-up-{shell.folder.name}"
    settings = '[agents.slow]\nkind = "program"\nmode = "plain"\n'
    script = f"echo $$ > pid; exec -a {mark} sleep 600"
    shell.write("muster.toml", f"{settings}command = ['bash', '-c', '{script}']\n")
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # else what nohup ignores is ignored here too
    with shell.start("ask", "slow", "hello", "--name", "asked") as process:
        signal.signal(signal.SIGHUP, before)
        while not (shell.folder / "pid").exists() or not (shell.folder / "pid").read_text().strip():
            assert process.poll() is None
        process.send_signal(signal.SIGHUP)
        process.communicate()
    at_work = int((shell.folder / "pid").read_text())
    assert process.returncode == 4
    with pytest.raises(ProcessLookupError):
        os.kill(at_work, 0)
    assert shell.run("asked")["state"] == "interrupted"


def test_an_interrupted_question_can_be_resumed(shell: Shell) -> None:
    with ForkedRehearsal(faults={"rates": {"timeout": 1}}) as rehearsal:
        shell.use(rehearsal)
        with shell.start("ask", MODEL, "hello", "--json", "--name", "asked") as process:
            while rehearsal.audit().requests == 0:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            line_with(process.stderr, "press Ctrl-C again")
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate()
        assert process.returncode == 4
        assert '"code": "interrupted"' in out
        rehearsal.faults({})
        assert shell.muster("runs", "resume", "asked", "--json").data()["result"]["text"] == "hello"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_stops_cleanly_and_another_goes_on(shell: Shell, number: signal.Signals) -> None:
    with ForkedRehearsal(latency_ms=1_500) as rehearsal:
        shell.use(rehearsal)
        run = submit(shell, 10)
        with shell.start("worker") as process:
            while rehearsal.audit().requests < 3:
                assert process.poll() is None
            process.send_signal(number)
            out, told = process.communicate()
        stopped = shell.run(run)
        assert process.returncode == 0
        assert f"run {run} was interrupted" in out
        assert "waited for" in told
        assert (stopped["state"], stopped["calls"]["uncertain"]) == ("interrupted", 0)
        assert shell.muster("worker", "--until-idle").code == 0
        assert rehearsal.audit().calls == 10
    assert shell.run(run)["state"] == "completed"


def test_a_workload_that_blocks_everything_ends_with_the_third_signal_and_its_run_can_be_resumed(shell: Shell) -> None:
    shell.declare_workloads()
    run = shell.submit("blocks", None)
    with shell.start("runs", "resume", run, "--quiet") as process:
        line_with(process.stdout, "blocking")
        while process.poll() is None:  # signals of one kind that come too fast count as one
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        _, told = process.communicate()
    assert process.returncode == 4
    assert "did not stop in time and was killed" in told
    assert shell.run(run)["state"] == "interrupted"


def test_sigterm_ends_a_command_that_was_started_with_sigint_ignored(shell: Shell) -> None:
    """As a shell starts commands in the background."""
    run = shell.submit("ask", {"agent": "sim/echo", "prompt": "hi"})
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with shell.start("runs", "watch", run) as process:
            line_with(process.stdout, "created")
            process.send_signal(signal.SIGTERM)
            process.communicate()
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.returncode == 4


INTERRUPT_WHILE_LOADING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from muster.__main__ import main
sys.argv = ["muster", "report", "--help"]
main()
print("loaded")
"""


@pytest.mark.parametrize("module", ["muster.cli.line.frame", "muster.cli.runs.report"])
def test_ctrl_c_while_the_command_is_loaded_ends_it_without_a_traceback(shell: Shell, module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT_WHILE_LOADING.replace("sys.argv[1]", repr(module))],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


INTERRUPTED_BEFORE = """
import sys
try:
    exec("raise KeyboardInterrupt")  # as while a dataclass is made
except KeyboardInterrupt:
    sys.argv = ["muster", "--version"]
from muster.cli.main import main
main()
"""


def test_the_exit_code_is_the_commands_wherever_a_signal_found_it() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_BEFORE], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
