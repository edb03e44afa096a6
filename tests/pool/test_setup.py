"""Commands that prepare a new working tree: run once in it, without a shell, and a failure fails the task."""

import asyncio
from pathlib import Path

import pytest

from muster.domain.errors import BadConfiguration, BadFile
from muster.domain.run import RunState
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from muster.settings import load_settings
from tests.git.trees import user_repository
from tests.pool.chains.home import chain_home, command, prompt
from tests.pool.test_pool import drive, opened, state
from tests.pool.test_trees import git, repository

__all__ = ["repository"]

AGENT = """
[agents.reader]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; cat made.txt; test -e ../../../go || exit 3"]
budget_usd = 0.0
"""


def toml(setup: str, *more: str) -> str:
    return "\n".join(["[pool]", 'agent = "reader"', f"setup = {setup}", *more, AGENT])


async def test_setup_runs_in_the_tree_without_a_shell_and_with_the_environment_of_the_slot(repository: Path) -> None:
    (repository / "go").touch()
    (repository / ".env").write_text("copied\n")
    write = """["sh", "-c", "cat .env > made.txt; printf '%s ' $1 $MUSTER_HOME >> made.txt", "sh", "$HOME;x"]"""
    async with opened(repository, toml(f"[\"touch 'two words'\", {write}]", 'copy = [".env"]')) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert done.state is TaskState.COMPLETED, done.run.error
        assert done.reply is not None
        assert done.reply.text.startswith("copied\n$HOME;x ")
        assert "/slots/slot-1" in done.reply.text
        assert "two words" in {file["path"] for file in done.saved["files"]}
    assert not (repository / "made.txt").exists()


async def test_setup_is_not_repeated_by_a_retry_and_is_told_as_an_event(repository: Path) -> None:
    async with opened(repository, toml("""[["sh", "-c", "echo once >> made.txt"]]""")) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        assert await state(m, task) is TaskState.FAILED
        (repository / "go").touch()
        again = await m.pool.tasks.retry(task.id)
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert done.reply is not None
        assert (done.state, done.reply.text) == (TaskState.COMPLETED, "once")
        events = await m._backend.store.events.read(again.run.id, 0, 100)
        assert [event.data["command"] for event in events if event.kind == "task.setup"] == [
            "sh -c 'echo once >> made.txt'"
        ]


async def test_a_tree_that_was_deleted_is_prepared_again(repository: Path) -> None:
    async with opened(repository, toml("""[["sh", "-c", "echo once >> made.txt; echo made.txt > .gitignore"]]""")) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        git(repository, "worktree", "remove", "--force", f".muster/worktrees/task-{task.id}")
        (repository / "go").touch()
        await m.pool.tasks.retry(task.id)
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert done.reply is not None
        assert (done.state, done.reply.text) == (TaskState.COMPLETED, "once")


async def test_a_failing_setup_fails_the_task_with_command_code_and_last_lines_and_a_retry_repeats_it(
    repository: Path,
) -> None:
    (repository / "go").touch()
    lines = "for n in 1 2 3; do echo line $n >&2; done; test -e ../../../fixed || exit 7; echo ok > made.txt"
    async with opened(repository, toml(f"""[["sh", "-c", "{lines}"]]""")) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        failed = await m.pool.tasks.get(task.id)
        error = failed.run.error or {}
        assert (failed.state, error["code"]) == (TaskState.FAILED, "setup_failed")
        for words in ("sh -c", "7", "line 3"):
            assert words in error["message"]
        assert "line 1" in error["log"]
        (slot,) = await m.pool.slots(name="slot-1")
        assert slot.record.failures == 0  # its agent was not to blame
        (repository / "fixed").touch()
        await m.pool.tasks.retry(task.id)
        await drive(m)
        assert await state(m, task) is TaskState.COMPLETED


@pytest.mark.parametrize(("setup", "words"), [('[["./nothing-there"]]', "nothing-there"), ('["sleep 600"]', "0.2")])
async def test_a_setup_that_cannot_be_started_or_takes_too_long_fails_the_task(
    repository: Path, setup: str, words: str
) -> None:
    async with opened(repository, toml(setup, "setup_timeout_secs = 0.2")) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        failed = await m.pool.tasks.get(task.id)
        assert (failed.state, (failed.run.error or {})["code"]) == (TaskState.FAILED, "setup_failed")
        assert words in str(failed.run.error)
        (slot,) = await m.pool.slots(name="slot-1")
        assert (slot.state, slot.record.failures) == ("idle", 0)


async def test_a_task_whose_tree_is_being_prepared_says_so(repository: Path) -> None:
    (repository / "go").touch()
    wait = "until test -e ../../../prepared; do sleep 0.05; done; echo x > made.txt"
    async with opened(repository, toml(f"""["true", ["sh", "-c", "{wait}"]]""")) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        driving = asyncio.ensure_future(drive(m))
        async with asyncio.timeout(60):
            while "until" not in (await m.pool.tasks.get(task.id)).setup:
                await m._backend.store.changes.wait(0.2, m._backend.store.changes.commits)
        (repository / "prepared").touch()
        await driving
        done = await m.pool.tasks.get(task.id)
        assert (done.state, done.setup) == (TaskState.COMPLETED, "")


@pytest.mark.parametrize("setup", ['["echo \'open"]', '[""]', "[[]]", '[["", "x"]]', "[3]", '"npm ci"'])
def test_what_is_no_command_is_refused_with_its_place(tmp_path: Path, setup: str) -> None:
    (tmp_path / "muster.toml").write_text(f"[pool]\nsetup = {setup}\n")
    with pytest.raises((BadConfiguration, BadFile), match="setup"):
        load_settings(folder=tmp_path, environment={})


async def test_the_tree_of_a_chain_is_prepared_too_and_once(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    (repository.folder / ".env").write_text("secret-free\n")
    setup = """[pool]\ncopy = [".env"]\nsetup = [["sh", "-c", "cat .env >> made.txt"]]\n"""
    async with chain_home(tmp_path, toml=setup) as home:
        steps = (command("a", "cat", "made.txt"), command("b", "test", "-e", f"{tmp_path}/go"))
        failed = await home.run(*steps, isolation="worktree", folder=repository.folder)
        assert failed.state is RunState.FAILED
        (tmp_path / "go").touch()
        resumed = await home.go_on(failed)
        assert resumed.state is RunState.COMPLETED, resumed.error
        assert (await home.outputs(resumed))["a"] == "secret-free"
        saved = resumed.result["saved"]["branch"]
        assert repository.git("show", f"{saved}:made.txt") == "secret-free\n"


async def test_a_failing_setup_fails_the_chain_before_its_first_step(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path, toml='[pool]\nsetup = ["false"]\n') as home:
        run = await home.run(prompt("a"), isolation="worktree", folder=repository.folder)
        assert (run.state, (run.error or {})["code"]) == (RunState.FAILED, "setup_failed")
        assert run.calls.done == 0
