"""A verification read from the store."""

from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, NotFound
from muster.store.sqlite.store import open_sqlite
from muster.testing.stores import new_run
from muster.verify.reports.run import open_waves_run
from tests.verify.reports.house import CODE, Story, agent, bad, fill, good, model, opened, wave


async def test_a_verification_comes_back_with_its_spec_its_files_and_its_waves(tmp_path: Path) -> None:
    async with opened(tmp_path, good(cleared=["/repo/.muster/pending/a"])) as (waves, _):
        assert [one.name for one in waves.spec.verifiers] == ["auditor", "enforcer", "reviewer"]
        assert [(file.path, file.lines) for file in waves.snapshot.files] == [("src/a.py", 6)]
        assert [one.wave for one in waves.waves] == [1, 2]
        assert [source.text async for source in waves.sources()] == [CODE]
        assert await waves.cleared() == ("/repo/.muster/pending/a",)


async def test_only_waves_that_have_a_report_are_there(tmp_path: Path) -> None:
    async with opened(tmp_path, bad()) as (waves, _):
        assert [one.wave for one in waves.waves] == [1]
        assert await waves.cleared() == ()


async def test_a_wave_that_was_not_asked_for_is_not_taken_from_another_time(tmp_path: Path) -> None:
    story = Story(
        verifiers=[model("a"), model("b", 2)],
        waves=[wave(1, agent("a")), wave(2, agent("b", 2))],
        spec={"waves": (2,)},
    )
    async with opened(tmp_path, story) as (waves, _):
        assert [one.wave for one in waves.waves] == [2]


async def test_a_run_of_something_else_is_refused(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    run = await store.runs.create(new_run("run1"))
    with pytest.raises(BadArgument, match="run run1 is a run of 'w', not a verification"):
        await open_waves_run(store, run)
    await store.maintenance.close()


async def test_a_run_that_never_read_its_files_has_nothing_to_report(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    run = await fill(store, good(read=False))
    with pytest.raises(NotFound, match="stopped before its files were read"):
        await open_waves_run(store, run)
    await store.maintenance.close()
