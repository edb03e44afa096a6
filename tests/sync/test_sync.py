"""`muster.sync` is the same Muster for code that is not async: from any thread, beside any loop."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, assert_type

import pytest

import muster
from muster import sync
from muster.sync.surface import KINDS

MAIL = ["Where is my parcel?", "Your invoice is wrong."]


@muster.workload("sync_mail")
async def sync_mail(ctx: muster.Context, spec: Any) -> list[str]:
    """Repeat every mail."""
    return [(await ctx.call("sim/echo", text, key=f"mail/{i}")).text for i, text in enumerate(spec)]


@pytest.fixture
def m(tmp_path: Path) -> Iterator[sync.Muster]:
    with sync.open(tmp_path / "store") as opened:
        yield opened


def test_calls_wait_and_return_what_is_awaited_elsewhere(m: sync.Muster) -> None:
    reply = m.ask("sim/echo", "hello")
    assert_type(reply, muster.Reply)
    assert reply.text == "hello"
    handle = m.start("sync_mail", MAIL, name="monday")
    assert_type(handle, sync.RunHandle)
    assert handle.result() == MAIL
    assert m.runs.find("monday").id == handle.id


def test_what_is_iterated_asynchronously_is_iterated(m: sync.Muster) -> None:
    handle = m.start("sync_mail", MAIL)
    kinds = [event.kind for event in handle.events()]
    assert_type(handle.events(), Iterator[muster.Event])
    assert (kinds[0], kinds[-1]) == ("run.created", "run.completed")
    with m.runs.follow(handle.id) as watcher:
        assert_type(watcher, sync.RunWatcher)
        assert isinstance(list(watcher)[-1], muster.RunEnd)
    for event in handle.events():  # left half-way, it is ended
        assert event.seq == 1
        break


def test_what_is_entered_asynchronously_is_entered(m: sync.Muster) -> None:
    with pytest.raises(ValueError, match="on purpose"), m.audit.action("run", "looked", client="c", request_id="r"):
        raise ValueError("on purpose")
    assert len(m.audit.list()) == 1


def test_an_error_is_raised_with_its_cause(m: sync.Muster) -> None:
    with pytest.raises(muster.MusterError) as caught:
        m.ask("nobody/at-all", "hello")
    assert caught.value.code == "configuration"
    with pytest.raises(muster.BadArgument) as refused:
        sync.open(agents={"critic": {"kind": "opnai"}})
    assert refused.value.__cause__ is not None


def test_it_can_be_closed_without_with_and_says_so_afterwards(tmp_path: Path) -> None:
    m = sync.open(tmp_path / "store")
    handle = m.start("sync_mail", MAIL)
    assert handle.result() == MAIL
    m.close()
    m.close()
    for use in (lambda: m.ask("sim/echo", "hello"), handle.result, lambda: m.runs, lambda: m.pool.status()):
        with pytest.raises(muster.StoreFailed, match="the store is closed"):
            use()


def test_several_threads_use_one_at_once(m: sync.Muster) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: m.ask("sim/echo", f"question {n}").text, range(40)))
    assert answers == [f"question {n}" for n in range(40)]


async def test_it_works_in_a_thread_whose_loop_runs_as_in_a_notebook(tmp_path: Path) -> None:
    assert asyncio.get_running_loop().is_running()
    with sync.open(tmp_path / "store") as m:
        assert m.ask("sim/echo", "hello").text == "hello"


def test_two_of_them_share_the_loop(m: sync.Muster, tmp_path: Path) -> None:
    before = threading.active_count()
    with sync.open(tmp_path / "other") as other:
        other.ask("sim/echo", "hello")
        assert [thread.name for thread in threading.enumerate()].count("muster-sync") == 1
    m.ask("sim/echo", "hello")
    assert threading.active_count() <= before + 1


def test_a_callback_that_would_wait_for_itself_is_told(m: sync.Muster) -> None:
    raised: list[BaseException] = []

    @muster.workload("sync_nested")
    async def nested(ctx: muster.Context, spec: Any) -> None:
        try:
            m.ask("sim/echo", "hello")
        except muster.Conflict as error:
            raised.append(error)

    m.start("sync_nested", None).result()
    assert "would wait for itself" in str(raised[0])


def test_a_fork_is_told_and_can_open_its_own(m: sync.Muster, tmp_path: Path) -> None:
    m.ask("sim/echo", "hello")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                m.ask("sim/echo", "hello")
            except muster.Conflict as error:
                with sync.open(tmp_path / "forked") as own:
                    told = "a fork of it" in error.message
                    code = 0 if told and own.ask("sim/echo", "hi").text == "hi" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert m.ask("sim/echo", "after").text == "after"


SLOW = """
import muster, sys

@muster.workload("slow")
async def slow(ctx, spec):
    await ctx.call("sim/echo", "first", key="first")
    print("ready", flush=True)
    return (await ctx.call("sim/slow", "second", key="second")).text

with muster.sync.open(sys.argv[1]) as m:
    m.start("slow", None, name="slow").result()
"""


def test_ctrl_c_ends_a_wait_and_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(tmp_path / "store")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(signal.SIGINT)
    _, shown = program.communicate(timeout=100)
    assert program.returncode == -signal.SIGINT, shown
    assert shown.rstrip().endswith("KeyboardInterrupt")
    names: dict[str, Any] = {"__name__": "slow"}
    exec(SLOW.partition("with muster")[0], names)
    with sync.open(tmp_path / "store") as m:
        assert m.runs.find("slow").state is muster.RunState.INTERRUPTED
        assert m.resume("slow").result() == "second"


def test_a_program_that_closes_nothing_ends(tmp_path: Path) -> None:
    program = "import muster, sys; print(muster.sync.open(sys.argv[1]).ask('sim/echo', 'hello').text)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_it_has_the_names_of_the_package(m: sync.Muster) -> None:
    assert dir(sync) == dir(muster)
    for name in vars(muster)["__getattr__"]("__all__"):
        found = getattr(sync, name)
        assert found is getattr(muster, name) or name in KINDS or name in ("open", "doctor")
    assert isinstance(m, sync.Muster)
    assert isinstance(m.runs.watch(m.start("sync_mail", MAIL).run()), sync.RunHandle)
    assert inspect.signature(sync.Muster.ask) == inspect.signature(muster.Muster.ask)
    with pytest.raises(AttributeError):
        vars(sync)["__getattr__"]("nothing")


def test_it_says_how_the_machine_is(tmp_path: Path) -> None:
    assert_type(sync.doctor(tmp_path).broken, tuple[Any, ...])  # type: ignore[assert-type]
    assert sync.doctor(tmp_path).all
