"""Suites that show images and documents: each file is stored once, sent with every case, and signed as evidence."""

import os
import random
import sqlite3
import tracemalloc
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muster.app import Muster, open_muster
from muster.app.base.costs import listed_price
from muster.app.project.editor_schemas import suite_schema
from muster.domain.errors import BadConfiguration
from muster.domain.patience import Patience
from muster.domain.run import RunState
from muster.settings import load_settings
from muster.suites.evidence.export import export_evidence
from muster.suites.evidence.layout import MEDIA
from muster.suites.evidence.rescoring import rescore
from muster.suites.evidence.verification import verify
from muster.suites.format.suite import examine
from muster.suites.order import SuiteChoice
from muster.text.schemas.json_schema import flaw as schema_mismatch
from tests.pictures import pdf, png
from tests.rehearsal import ForkedRehearsal
from tests.suites.stage import JUDGE, MODEL, a_case, a_suite, playing, stage

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PATIENCE = Patience(settle=0.01, poll_first=0.01, poll_longest=0.05)


def shows(*files: str, text: str = "hello") -> Mapping[str, Any]:
    """Make a message of the user that shows files."""
    kinds = {".pdf": "document"}
    parts = [{"type": kinds.get(Path(file).suffix, "image"), "file": file} for file in files]
    return {"role": "user", "content": [*parts, {"type": "text", "text": text}]}


def a_seeing_case(name: str, *files: str, text: str = "hello", **parts: Any) -> dict[str, Any]:
    return a_case(name, text, input={"messages": [shows(*files, text=text)]}, **parts)


def files(folder: Path) -> None:
    (folder / "pictures").mkdir()
    for name, data in (("a.png", png(640, 480)), ("b.png", png(text=b"b")), ("c.pdf", pdf(2))):
        (folder / "pictures" / name).write_bytes(data)


def stored(folder: Path, query: str) -> int:
    with closing(sqlite3.connect(folder / ".muster" / "muster.db")) as database:
        return int(database.execute(query).fetchone()[0])


async def test_a_case_shows_the_files_that_it_names(tmp_path: Path) -> None:
    files(tmp_path)
    shown = a_seeing_case("shown", "pictures/a.png", "pictures/c.pdf")
    a_suite(tmp_path, shown, a_seeing_case("again", "pictures/a.png"), a_case("plain"))
    async with stage(tmp_path, playing(price_of=listed_price)) as held:
        run = await held.run()
        results = {result.case: result for result in await held.results(run)}
        assert {str(result.status) for result in results.values()} == {"passed"}
        assert results["s/shown"].seconds is not None
        tokens = {name: result.input_tokens for name, result in results.items()}
        assert tokens["s/shown"] > tokens["s/again"] > tokens["s/plain"] + 300
        assert run.spent.billed == held.agent.audit.cost
    assert stored(tmp_path, "SELECT COUNT(*) FROM media") == 2


async def test_rows_of_a_dataset_name_the_pictures_of_their_cases(tmp_path: Path) -> None:
    files(tmp_path)
    (tmp_path / "rows.csv").write_text("id,file\n1,pictures/a.png\n2,pictures/b.png\n3,pictures/none.png\n")
    rows = a_seeing_case("rows", "{{file}}", dataset={"file": "rows.csv", "id": "id"})
    a_suite(tmp_path, rows)
    found = examine(tmp_path / "cases.yaml")
    assert found.cases == 2
    assert ["there is no file pictures/none.png" in flaw.message for flaw in found.flaws] == [True]
    async with stage(tmp_path) as held:
        (tmp_path / "rows.csv").write_text("id,file\n1,pictures/a.png\n2,pictures/b.png\n")
        assert (await held.run()).result["counts"] == {"passed": 2}
    assert stored(tmp_path, "SELECT COUNT(*) FROM media") == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([{"type": "image", "file": "../a.png"}], "without .."),
        ([{"type": "image", "file": "/etc/passwd"}], "may not be named"),
        ([{"type": "image", "file": "link.png"}], "leads out of"),
        ([{"type": "image", "file": "cases.yaml"}], "is not PNG"),
        ([{"type": "document", "file": "pictures/a.png"}], "image/png"),
        ([{"type": "image"}], "needs file"),
        ([{"type": "text", "text": "a", "file": "pictures/a.png"}], "does not use file"),
        ([{"type": "video", "file": "a"}], "must be"),
        ([{"type": "image", "fil": "pictures/a.png"}], "did you mean file"),
    ],
)
def test_parts_that_cannot_be_shown_are_told_with_their_place(tmp_path: Path, content: Any, words: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "muster.toml").write_text("")
    files(project)
    (tmp_path / "outside.png").write_bytes(png())
    (project / "link.png").symlink_to(tmp_path / "outside.png")
    a_suite(project, a_case("one", input={"messages": [{"role": "user", "content": content}]}))
    flaws = examine(project / "cases.yaml").flaws
    assert any(words in flaw.message and "input.messages[0]" in flaw.message for flaw in flaws), flaws


def test_only_a_user_shows_something_and_texts_alone_are_a_text(tmp_path: Path) -> None:
    files(tmp_path)
    system = {**shows("pictures/a.png"), "role": "system"}
    a_suite(tmp_path, a_case("one", input={"messages": [system]}))
    assert "only a message of the role user" in examine(tmp_path / "cases.yaml").flaws[0].message
    a_suite(tmp_path, a_case("one", input={"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}))
    assert not examine(tmp_path / "cases.yaml").flaws


def test_editors_know_both_forms_of_content() -> None:
    def flaw(content: Any) -> str | None:
        case = a_case("one", input={"messages": [{"role": "user", "content": content}]})
        return schema_mismatch({"schema_version": 1, "skill_or_agent": "s", "cases": [case]}, suite_schema())

    assert flaw("text") is None
    assert flaw([{"type": "image", "file": "a.png"}, {"type": "text", "text": "a"}]) is None
    assert flaw([{"type": "image", "path": "a.png"}]) is not None
    assert flaw({"type": "text"}) is not None


async def test_a_suite_is_refused_for_an_agent_that_sees_nothing_before_anything_is_stored(tmp_path: Path) -> None:
    files(tmp_path)
    a_suite(tmp_path, a_case("plain"), a_seeing_case("shown", "pictures/a.png"))
    async with stage(tmp_path) as held:
        with pytest.raises(BadConfiguration, match=r"case s/shown .*'sim/echo' cannot be shown images"):
            await held.muster.start("suite", {"path": [str(tmp_path / "cases.yaml")], "agents": ["sim/echo"]})
        assert not await held.muster.runs.list()


async def test_a_file_that_changed_after_the_survey_is_refused(tmp_path: Path) -> None:
    files(tmp_path)
    a_suite(tmp_path, a_seeing_case("shown", "pictures/a.png"))
    async with stage(tmp_path) as held:
        spec = await held.muster.suites.spec(choice_of(tmp_path))
        plan = held.muster.suites.plan(spec, keep=True)
        (tmp_path / "pictures" / "a.png").write_bytes(png(text=b"other"))
        run = await (await held.muster.suites.start(spec, plan=plan)).wait()
        assert run.state is RunState.FAILED
        assert "was changed after it was read" in str(run.error)
        assert held.agent.audit.calls == 0


def choice_of(folder: Path) -> SuiteChoice:
    return SuiteChoice(paths=(str(folder / "cases.yaml"),), agents=(MODEL,))


async def test_the_report_has_every_picture_once_and_names_documents(tmp_path: Path) -> None:
    files(tmp_path)
    cases = [a_seeing_case(f"c{n}", "pictures/a.png", "pictures/c.pdf") for n in range(3)]
    a_suite(tmp_path, *cases)
    async with stage(tmp_path) as held:
        run = await held.run()
        page = await (await held.muster.suites.whole_report(run)).text("html")
    assert page.count(b64encode(png(640, 480)).decode()) == 1
    assert "img-src data:" in page
    assert b64encode(pdf(2)).decode() not in page
    assert page.count('"c.pdf"') == 3


async def test_the_evidence_of_a_run_has_what_its_cases_show(tmp_path: Path) -> None:
    files(tmp_path)
    a_suite(tmp_path, a_seeing_case("shown", "pictures/a.png", "pictures/c.pdf"))
    archive = tmp_path / "run.tar"
    async with stage(tmp_path) as held:
        run = await held.run()
        await export_evidence(await held.opened(run), archive, KEY)
    found = verify(archive)
    assert found.valid
    assert sorted(member.name.rpartition(".")[2] for member in found.members if member.name.startswith(MEDIA)) == [
        "pdf",
        "png",
    ]
    assert rescore(archive).ok


async def run_all(muster: Muster, folder: Path, model: str, dispatch: str) -> int:
    """Run a suite; return the most memory that was in use meanwhile."""
    tracemalloc.start()
    try:
        spec = {"path": [str(folder / "cases.yaml")], "agents": [model]}
        run = await (await muster.start("suite", spec, dispatch=dispatch, budget_usd=20)).wait()
        assert run.result["counts"] == {"passed": run.result["cases"]}, run.error
        assert run.spent.reserved == run.spent.uncertain == 0
        assert run.overdraft is None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def many_cases(folder: Path, cases: int, pictures: int, size: int) -> None:
    """Run many cases that share a few pictures, live and in batches; memory stays far below what is sent."""
    chance = random.Random(1)
    for number in range(pictures):
        (folder / f"{number}.png").write_bytes(png(640, 480, chance.randbytes(size)))
    told = [a_seeing_case(f"c{n}", f"{n % pictures}.png", text=f"What is {n}?") for n in range(cases)]
    a_suite(folder, *told)
    (folder / "muster.toml").write_text("")
    with ForkedRehearsal(batch_ms=1.0) as server:
        environment = {
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": "sk-test-0123456789",
            "ANTHROPIC_BASE_URL": server.anthropic,
            "OPENAI_API_KEY": "sk-test-9876543210",
            "OPENAI_BASE_URL": server.openai,
        }
        settings = load_settings(folder=folder, environment=environment)
        async with open_muster(settings=settings, patience=PATIENCE) as muster:
            for model in (MODEL, JUDGE):
                for dispatch in ("live", "batch"):
                    used = await run_all(muster, folder, model, dispatch)
                    assert used < max(40_000_000, cases * size * 4 // 3 * 0.8)
            assert server.audit().calls == 4 * cases
    assert stored(folder, "SELECT COUNT(*) FROM media") == pictures
    assert stored(folder, "SELECT SUM(LENGTH(data)) FROM batch_bodies") < 40 * cases * 2 + size
    assert stored(folder, "SELECT MAX(LENGTH(request)) FROM requests") < 1_000


async def test_cases_that_share_pictures_store_them_once(tmp_path: Path) -> None:
    await many_cases(tmp_path, cases=25, pictures=5, size=20_000)


@pytest.mark.chaos
async def test_500_cases_that_share_20_pictures_store_20(tmp_path: Path) -> None:
    await many_cases(tmp_path, cases=500, pictures=20, size=200_000)
