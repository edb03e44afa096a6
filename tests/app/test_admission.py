"""Whatever way a run comes in, what would keep it from being done is said before it is stored."""

from pathlib import Path
from typing import Any

import pytest

import muster
from muster.domain.errors import BadArgument, BadConfiguration, MusterError, NotFound

SUITE = """
schema_version: 1
skill_or_agent: mail
cases:
  - id: mail/hello
    input: {messages: [{role: user, content: hello}]}
    expected: {output: [{kind: contains, value: hello}]}
"""
ASK = {"agent": "nobody/at-all", "prompt": "hello"}


@pytest.mark.parametrize("door", ["start", "submit", "runs.start", "runs.submit"])
@pytest.mark.parametrize(
    ("workload", "spec"),
    [
        ("ask", ASK),
        ("suite", {"path": "cases.yaml", "agents": ["nobody/at-all"]}),
        ("suite", {"path": "nowhere.yaml", "agents": ["sim/echo"]}),
    ],
)
async def test_nothing_is_stored_of_what_cannot_be_done(
    door: str, workload: str, spec: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases.yaml").write_text(SUITE)
    async with muster.open(tmp_path / "home") as m:
        enter = getattr(m.runs if door.startswith("runs.") else m, door.removeprefix("runs."))
        with pytest.raises((BadConfiguration, NotFound)):
            await enter(workload, spec)
        assert list(await m.runs.list()) == []


async def test_a_replay_of_an_empty_reference_asks_nobody(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        with pytest.raises(MusterError):
            await m.suites.source(replay="")
        with pytest.raises(MusterError):
            await m.suites.source(reuse="")


async def test_a_worker_needs_a_place_for_a_run(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        for most in (0, -1):
            with pytest.raises(BadArgument):
                m.worker(most=most)


async def test_what_is_not_a_value_of_ours_is_refused_by_name(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        wrong: list[Any] = [
            m.ask("sim/echo", "x", dispatch=3),  # type: ignore[call-overload]
            m.start(None, {}),  # type: ignore[call-overload]
            m.start("ask", {"agent": "sim/echo", "prompt": "x"}, tags=None),  # type: ignore[call-overload]
            m.runs.list(limit=10**30),
            m.batches.find(None),  # type: ignore[arg-type]
            m.suites.find(3),  # type: ignore[arg-type]
            m.runs.details("last", calls=-1),
        ]
        for call in wrong:
            with pytest.raises(BadArgument):
                await call
        with pytest.raises(BadArgument):
            m.project.validate([])


def test_a_workload_has_a_name_and_is_async() -> None:
    with pytest.raises(BadArgument):
        muster.workload("")
    with pytest.raises(BadArgument, match="async function"):
        muster.workload("of-a-test")(lambda ctx, spec: None)  # type: ignore[type-var]
