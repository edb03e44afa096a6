"""What is known before anything is spent: who verifies which files, in how many calls, and what that can cost."""

from pathlib import Path
from typing import Any

import pytest

from muster.app.base.costs import Quoting
from muster.app.verify.request import Prepared, VerifyChoice
from muster.app.verify.verifications import VerifyFolders, declared
from muster.domain.dispatch import Dispatch, Mode
from muster.domain.errors import BadConfiguration, NotFound
from muster.domain.run import RunState
from muster.verify.declaration.verification import Limits
from muster.verify.sources.files import FileSelection
from muster.verify.spec import stored
from tests.git.repository import Repository
from tests.verify.stage import CODE, OPENAI, WavesStage, a_checker, a_model, a_reviewer, stage

LONG = {"a.py": CODE * 200, "b.py": CODE * 200}
AGENTS = """\
version: 1
model: {model}
agents:
  - {{name: {name}, prompt: Look., include: ["*.py"]}}
  - {{name: later, wave: 2, prompt: Look., include: ["*.js"]}}
"""


def declare(path: Path, name: str, model: str = OPENAI) -> Path:
    path.write_text(AGENTS.format(name=name, model=model), encoding="utf-8")
    return path


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
async def test_a_run_costs_what_its_survey_says_it_can(tmp_path: Path, mode: Mode, cache: bool) -> None:
    async with stage(tmp_path, files=LONG) as s:
        agents = [a_model(name) for name in ("one", "two", "three")]
        checker = a_checker("lint", "pass")
        spec = s.spec(*agents, checker, a_reviewer(), limits=Limits(chunk_bytes=15_000), cache=cache)
        found = s.muster.verify.plan(spec, Dispatch(mode=mode), Quoting.ALL)
        assert s.anthropic.audit.requests == 0
        sent = Mode.LIVE if mode is Mode.FLEX else mode  # which the provider does not have
        assert [(part.verifier.name, part.load.calls, part.mode) for part in found.parts] == [
            *((name, 2, sent) for name in ("one", "two", "three")),
            ("lint", 1, None),
            ("reviewer", 2, sent),
        ]
        run = await s.drive(spec, dispatch=str(mode))
        assert run.result["passed"]
        assert run.calls.total == found.all.calls == 9
        # About: how many bytes make a token is known to nobody before.
        assert 0.5 * run.spent.billed < found.all.least < 1.32 * run.spent.billed < found.all.most  # a tenth for the US


async def test_whatever_an_agent_says_of_batches_a_live_verification_has_none(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        spec = s.spec(a_model("one", dispatch="batch"), a_model("two"), live=True)
        assert not [
            part for part in s.muster.verify.plan(spec, Dispatch(), Quoting.FIRST).parts if part.mode is Mode.BATCH
        ]


async def prepared(s: WavesStage, *paths: str, **choice: Any) -> Prepared:
    async with s.muster.verify.prepare(s.root, FileSelection(paths=paths or (".",)), VerifyChoice(**choice)) as found:
        return found


async def test_files_that_are_for_nobody_who_is_asked_are_left_out_with_a_word(tmp_path: Path) -> None:
    async with stage(tmp_path, files={"a.py": CODE, "b.js": "1;\n", "c.txt": "words\n"}) as s:
        declare(tmp_path / "agents.yaml", "auditor")
        whole = await prepared(s, agents_file=tmp_path / "agents.yaml")
        assert whole.spec.files == ("a.py", "b.js")
        assert [(left.path, left.why) for left in whole.left_out] == [("c.txt", "no agent handles such files")]
        part = await prepared(s, agents_file=tmp_path / "agents.yaml", waves=(1,))
        assert part.spec.files == ("a.py",)
        run = await s.drive(part.spec)
        assert run.result["passed"]


async def test_who_verifies_is_the_named_file_else_the_folders_own_else_the_shipped(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        assert (await declared(s.muster.settings, s.root, None)).file == "the built-in agents"
        declare(s.root / "verify.yaml", "own")
        assert [one.name for one in (await declared(s.muster.settings, s.root, None)).agents] == ["own", "later"]
        named = declare(tmp_path / "named.yaml", "named")
        found = await prepared(s, "a.py", agents_file=named, model="anthropic/claude-haiku-5-5")
        assert {one.model for one in found.spec.verifiers} == {"anthropic/claude-haiku-5-5"}
        assert (found.spec.verifiers[0].name, found.agents_file.endswith("named.yaml")) == ("named", True)


@pytest.mark.parametrize("choice", [{"waves": (3,)}, {"agents": ("nobody",)}])
async def test_a_part_that_does_not_exist_is_refused(tmp_path: Path, choice: dict[str, Any]) -> None:
    async with stage(tmp_path) as s:
        with pytest.raises(NotFound, match=r"^(no wave|unknown agent) "):
            await prepared(s, **choice)


async def test_an_agent_that_nobody_knows_is_told_before_anything_is_spent(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        with pytest.raises(BadConfiguration):
            s.muster.verify.plan(s.spec(a_model("one", model="nobody")), Dispatch(), Quoting.NONE)


async def test_staged_contents_are_verified_and_removed_when_they_are_needed_no_more(tmp_path: Path) -> None:
    async with stage(tmp_path, files={}) as s:
        repository = Repository(s.root)
        repository.write("a.py", CODE)
        repository.git("add", "a.py")
        repository.write("a.py", "changed = True\n")
        async with s.muster.verify.prepare(s.root, FileSelection(staged=True), VerifyChoice()) as found:
            staged = Path(found.spec.source)
            assert (staged / "a.py").read_text() == CODE
            handle = await s.muster.verify.start(found, s.muster.runs.options())
        assert (staged / "a.py").exists()  # the run may not have read it yet
        run = await handle.wait()
        texts = [str(entry.request) for entry in await s.calls(run)]
        assert {"return one + other" in text for text in texts} == {True}
        assert not [text for text in texts if "changed = True" in text]
        s.muster.verify.tidy(run)
        assert (staged.exists(), (s.root / "a.py").exists()) == (False, True)
        VerifyFolders(s.muster.settings).tidy(s.spec(a_model("one"), source=str(s.root)))  # which is no folder of ours
        assert (s.root / "a.py").exists()


async def test_a_worker_ends_a_verification_like_its_own_command(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        submitted = await s.muster.runs.submit("waves", stored(s.spec(a_model("one"))))
        await s.muster.worker(on_error=lambda run, error: pytest.fail(str(error))).serve(until_idle=True)
        run = await submitted.run()
        folders = VerifyFolders(s.muster.settings)
        assert run.state is RunState.COMPLETED
        assert [path.read_text() for path in folders.reports.rglob("*") if path.is_file()]
        assert any(run.id in path.read_text() for path in folders.log.rglob("*") if path.is_file())
