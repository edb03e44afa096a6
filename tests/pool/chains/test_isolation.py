"""Chains in working trees of their own: the user's tree stays as it is, and no work is lost."""

import asyncio
import json
from pathlib import Path

import pytest

from muster.app.views.chains import progress_view
from muster.domain.errors import MusterError
from muster.domain.run import RunState
from muster.mcp.answers import document
from muster.pool.chains.isolation import before_key
from muster.pool.chains.progress import ChainProgress
from tests import forked
from tests.git.repository import Repository
from tests.git.trees import environment, hooks_ran, user_repository, users_state
from tests.pool.chains.home import chain_home, command, prompt

CODER = """[agents.coder]
kind = "cli"
budget_usd = 1
command = ["sh", "-c", "echo edited > a.py; echo done", "{prompt}"]
"""
WRITE = ("sh", "-c", 'printf "%s" "$1" > "$2"', "sh")


def on_branch(repository: Repository, branch: str, file: str) -> str:
    return repository.git("show", f"{branch}:{file}")


@pytest.mark.parametrize("isolation", ["worktree", "clone"])
async def test_commands_work_in_a_tree_whose_branch_holds_their_work(tmp_path: Path, isolation: str) -> None:
    repository = user_repository(tmp_path / "repository")
    before = users_state(repository)
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt("a", "hello"),
            command("b", *WRITE, "{previous_output}", "made.txt"),
            command("c", "sh", "-c", "pwd; cat made.txt a.py"),
            isolation=isolation,
            folder=repository.folder,
        )
        assert run.state is RunState.COMPLETED, run.error
        saved = run.result["saved"]
        assert saved["branch"] == f"muster/chain-{run.id}"
        assert [file["path"] for file in saved["files"]] == ["made.txt"]
        assert on_branch(repository, saved["branch"], "made.txt") == "hello"
        where, *rest = (await home.outputs(run))["c"].split("\n")
        assert Path(where).is_relative_to(repository.folder / ".muster" / "worktrees")
        assert rest == ["hellofirst", "second", "third"]  # as committed, not as the user left it
        found = await home.progress(run)
        assert (found.branch, found.worktree, bool(found.summary)) == (saved["branch"], where, True)
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert "error" not in repository.git("fsck", "--strict")


async def test_the_work_of_a_chain_that_failed_is_kept_and_a_resume_goes_on_in_its_tree(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path) as home:
        failed = await home.run(
            command("a", *WRITE, "first", "a.txt"),
            command("b", "sh", "-c", f"test -e {tmp_path}/go && cat a.txt > b.txt"),
            isolation="worktree",
            folder=repository.folder,
        )
        assert failed.state is RunState.FAILED
        branch = f"muster/chain-{failed.id}"
        assert f"its work is on the branch {branch}" in str(failed.error)
        assert on_branch(repository, branch, "a.txt") == "first"
        (tmp_path / "go").touch()
        resumed = await home.go_on(failed)
        assert resumed.state is RunState.COMPLETED, resumed.error
        assert resumed.result["saved"]["branch"] == branch
        assert on_branch(repository, branch, "b.txt") == "first"


async def test_the_work_of_a_canceled_chain_is_kept_when_it_is_asked_for(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path) as home:
        path = home.write(command("a", "sh", "-c", "echo x > a.txt"), command("b", "sleep", "60"), isolation="worktree")
        spec = home.muster.chains.spec(home.muster.chains.load(path), folder=repository.folder)
        handle = await home.muster.chains.start(spec)
        async for event in handle.events():
            if event.kind == "chain.step.started" and event.data["name"] == "b":
                break
        await handle.cancel()
        saved = await home.muster.chains.save(await handle.run())
        assert saved is not None
        assert on_branch(repository, saved.branch, "a.txt") == "x\n"


async def test_a_chain_that_was_started_in_a_sub_folder_works_in_the_same_one(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path) as home:
        run = await home.run(command("a", "cat", "c.py"), isolation="worktree", folder=repository.folder / "src")
        assert (await home.outputs(run))["a"] == "x = 1"


async def test_a_cli_agent_works_in_the_tree(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path, toml=CODER) as home:
        run = await home.run(prompt("a", "edit", agent="coder"), isolation="worktree", folder=repository.folder)
        assert run.state is RunState.COMPLETED, run.error
        assert on_branch(repository, run.result["saved"]["branch"], "a.py") == "edited\n"
        assert (repository.folder / "a.py").read_text() == "first\nsecond\nthird\n"


async def test_outside_of_a_repository_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    async with chain_home(tmp_path) as home:
        with pytest.raises(MusterError, match="git"):
            await home.run(prompt("a"), isolation="worktree", folder=tmp_path / "plain")
        assert await home.muster.runs.list() == []


async def test_a_tree_that_cannot_be_made_fails_the_chain_and_nothing_is_run_elsewhere(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    repository.write(".muster/worktrees", "a file where the folder should be")
    async with chain_home(tmp_path) as home:
        run = await home.run(command("a", "touch", "made"), isolation="worktree", folder=repository.folder)
        assert run.state is RunState.FAILED
        assert not (repository.folder / "made").exists()


@pytest.mark.chaos
async def test_16_chains_at_once_in_one_repository_have_a_branch_each(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    before = users_state(repository)
    async with chain_home(tmp_path) as home:
        runs = await asyncio.gather(
            *(
                home.run(
                    command("a", *WRITE, f"{n}", "a.txt"),
                    isolation="worktree",
                    folder=repository.folder,
                    name=f"chain-{n}.yaml",
                )
                for n in range(16)
            )
        )
        assert {run.state for run in runs} == {RunState.COMPLETED}, [run.error for run in runs]
        texts = [on_branch(repository, run.result["saved"]["branch"], "a.txt") for run in runs]
    assert sorted(texts, key=int) == [f"{n}" for n in range(16)]
    assert users_state(repository) == before


# Comes back when all of so many chains are at work, each of which has its tree by then.
MEET = 'touch "$1/$2"; while [ "$(ls "$1" | wc -l)" -lt "$3" ]; do sleep 0.05; done; printf "%s" "$2" > a.txt'


@pytest.mark.chaos
async def test_16_chains_of_4_processes_at_work_at_the_same_time_in_one_repository(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    before = users_state(repository)
    met = tmp_path / "met"
    met.mkdir()
    for n in range(16):
        steps = [command("a", "sh", "-c", MEET, "sh", str(met), str(n), "16", timeout_secs=200)]
        chain = {"name": f"chain-{n}", "agent": "sim/echo", "isolation": "worktree", "steps": steps}
        (tmp_path / f"{n}.yaml").write_text(json.dumps(chain))
    processes = [
        await forked.start(
            *("muster", "chain", "run", "--json"),
            *(str(tmp_path / f"{n}.yaml") for n in range(first, first + 4)),
            folder=repository.folder,
            environment=environment(),
        )
        for first in range(0, 16, 4)
    ]
    try:
        ends = await asyncio.wait_for(asyncio.gather(*(process.communicate() for process in processes)), 250)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
    assert [process.returncode for process in processes] == [0] * 4, ends
    assert not [err for _, err in ends if b"lock" in err], ends
    chains = [chain for out, _ in ends for chain in json.loads(out)["data"]["chains"]]
    texts = [on_branch(repository, chain["branch"], "a.txt") for chain in chains]
    assert sorted(texts, key=int) == [f"{n}" for n in range(16)]
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert "error" not in repository.git("fsck", "--strict")


async def test_each_row_has_a_tree_of_its_own(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path) as home:
        run = await home.run(
            command("a", *WRITE, "{input.n}", "a.txt"),
            inputs={"n": {}},
            rows=[{"n": "0"}, {"n": "1"}],
            isolation="worktree",
            folder=repository.folder,
        )
        assert run.state is RunState.COMPLETED, run.error
        assert [on_branch(repository, row["branch"], "a.txt") for row in run.result["rows"]] == ["0", "1"]


async def test_a_step_with_a_budget_works_in_the_tree_of_its_chain(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt("a", "x", budget_usd=1, check=["touch", "proof.txt"]),
            isolation="worktree",
            folder=repository.folder,
        )
        assert run.state is RunState.COMPLETED, run.error
        assert on_branch(repository, run.result["saved"]["branch"], "proof.txt") == ""


async def test_chains_with_a_cli_agent_have_a_worktree_each_unless_none_is_said(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    before = users_state(repository)
    async with chain_home(tmp_path, toml=CODER) as home:
        step = prompt("a", "edit", agent="coder")
        runs = await asyncio.gather(
            *(home.run(step, folder=repository.folder, name=f"chain-{n}.yaml") for n in range(2))
        )
        branches = {run.result["saved"]["branch"] for run in runs}
        assert len(branches) == 2
        assert users_state(repository) == before
        asked = home.muster.chains.spec(home.muster.chains.load(home.write(step)), folder=repository.folder)
        assert await home.muster.chains.folder_note(asked) == ""
        here = await home.run(step, folder=repository.folder, isolation="none")
        assert here.state is RunState.COMPLETED, here.error
        assert "saved" not in here.result
    assert users_state(repository) == before
    assert (tmp_path / "a.py").read_text() == "edited\n"  # the folder of muster.toml, as of any call


async def test_a_chain_without_such_an_agent_works_in_the_folder(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path) as home:
        run = await home.run(command("a", *WRITE, "here", "made.txt"), prompt("b"), folder=repository.folder)
        assert run.state is RunState.COMPLETED, run.error
    assert (repository.folder / "made.txt").read_text() == "here"


async def test_outside_of_git_a_cli_agent_works_in_the_folder_and_that_is_told(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    async with chain_home(tmp_path, toml=CODER) as home:
        step = prompt("a", "edit", agent="coder")
        spec = home.muster.chains.spec(home.muster.chains.load(home.write(step)), folder=plain)
        note = await home.muster.chains.folder_note(spec)
        assert f"{plain} is not in a git repository" in note
        assert (await home.run(step, folder=plain)).state is RunState.COMPLETED
    assert (tmp_path / "a.py").read_text() == "edited\n"


MEDDLER = CODER.replace("echo edited > a.py", "git config core.hooksPath x; git tag mine; echo edited > a.py")
MEDDLES = ("sh", "-c", "git config core.hooksPath x; git tag mine")
CHANGED = ["ref refs/tags/mine", "setting core.hookspath"]


def changed(found: ChainProgress) -> list[str]:
    """Return what changed in the user's repository, as every screen has it."""
    return [one["what"] for one in progress_view(found).repository_changes]


@pytest.mark.parametrize("last", ["true", "false"])
async def test_what_a_chain_changes_in_the_users_repository_is_told_also_if_it_fails(tmp_path: Path, last: str) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path) as home:
        steps = (command("a", *MEDDLES), command("b", last))
        run = await home.run(*steps, isolation="worktree", folder=repository.folder)
        assert run.state is (RunState.COMPLETED if last == "true" else RunState.FAILED)
        repository.git("tag", "-d", "mine")  # what the user does later is not of this run
        found = await home.progress(run)
        assert changed(found) == CHANGED
        assert (await document(home.muster, run))["repository_changes"] == found.repository["repository_changes"]


async def test_what_a_canceled_chain_changed_in_the_users_repository_is_told_too(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(tmp_path) as home:
        path = home.write(command("a", *MEDDLES), command("b", "sleep", "60"), isolation="worktree")
        spec = home.muster.chains.spec(home.muster.chains.load(path), folder=repository.folder)
        handle = await home.muster.chains.start(spec)
        async for event in handle.events():
            if event.kind == "chain.step.started" and event.data["name"] == "b":
                break
        await handle.cancel()
        await home.muster.chains.save(await handle.run())
        repository.git("tag", "-d", "mine")
        await home.muster.chains.save(await handle.run())  # what the user did since then is not of it
        assert changed(await home.progress(await handle.run())) == CHANGED


async def test_agents_of_a_chain_without_a_tree_and_rows_of_inputs_are_compared_too(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    async with chain_home(repository.folder, toml=MEDDLER) as home:
        run = await home.run(prompt("a", "x", agent="coder"), folder=repository.folder, isolation="none")
        assert changed(await home.progress(run)) == CHANGED
        repository.git("tag", "-d", "mine")
        rows = await home.run(
            prompt("a", "x", agent="coder"), inputs={"n": {}}, rows=[{"n": "0"}, {"n": "1"}], folder=repository.folder
        )
        assert changed(await home.progress(rows)) == ["ref refs/tags/mine"]
        model = await home.run(prompt("a"), folder=repository.folder)
        assert not await home.muster._backend.store.journal.find(model.id, before_key(model.id))
