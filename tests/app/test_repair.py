"""Proposed changes made and verified again through Python, as `verify --fix` does it."""

import json
import sys
from pathlib import Path

import pytest

import muster
from muster.app.verify.request import VerifyRequest
from muster.domain.errors import BadArgument, Conflict
from muster.settings import load_settings

# Proposes GOOD for BAD, and nothing for NEVER.
CHECK = """
import json, pathlib, sys
findings = [
    {
        "file": name, "line": number, "severity": "high", "finding": "wrong",
        "replacement": line.replace("BAD", "GOOD") if "BAD" in line else None,
    }
    for name in sys.argv[1:]
    for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1)
    if "BAD" in line or "NEVER" in line
]
print(json.dumps({"findings": findings}))
"""


def request_in(folder: Path, m: muster.Muster, code: str, detach: bool = False) -> VerifyRequest:
    (folder / "check.py").write_text(CHECK, encoding="utf-8")
    (folder / "shop.txt").write_text(code, encoding="utf-8")
    command = json.dumps([sys.executable, "-I", "-S", "check.py", "{files}"])
    (folder / "verify.yaml").write_text(
        f"agents: [{{name: words, kind: command, parser: json, command: {command}}}]\n", encoding="utf-8"
    )
    selection = muster.FileSelection(paths=("shop.txt",))
    return VerifyRequest(folder=folder, selection=selection, options=m.runs.options(budget_usd="0.10"), detach=detach)


async def begun(m: muster.Muster, request: VerifyRequest) -> muster.Run:
    started = await m.verify.begin(request)
    assert started.handle is not None
    return await started.handle.wait()


async def test_changes_are_made_and_verified_with_what_is_left_of_the_budget(tmp_path: Path) -> None:
    async with muster.open(settings=load_settings(tmp_path / "home", folder=tmp_path, environment={})) as m:
        request = request_in(tmp_path, m, "BAD\n")
        first = await begun(m, request)
        assert (await m.verify.conclude(first)).can_be_repaired
        repair = await m.verify.repair(first, request)
        assert (repair.fixed.changed, repair.obstacle) == (("shop.txt",), "")
        assert (tmp_path / "shop.txt").read_text() == "GOOD\n"
        assert repair.again is not None
        assert repair.again.handle is not None
        last = await repair.again.handle.wait()
        done = await m.verify.conclude(last, repair)
        assert (done.ok, done.unverified, last.cap) == (True, (), 100_000)


async def test_where_nothing_can_be_changed_nothing_is_verified_again(tmp_path: Path) -> None:
    async with muster.open(settings=load_settings(tmp_path / "home", folder=tmp_path, environment={})) as m:
        request = request_in(tmp_path, m, "NEVER\n")
        first = await begun(m, request)
        repair = await m.verify.repair(first, request)
        assert (repair.again, repair.fixed.changed) == (None, ())
        assert not (await m.verify.conclude(first, repair)).ok


async def test_a_request_that_is_detached_is_not_repaired_and_needs_batches(tmp_path: Path) -> None:
    async with muster.open(settings=load_settings(tmp_path / "home", folder=tmp_path, environment={})) as m:
        request = request_in(tmp_path, m, "BAD\n", detach=True)
        with pytest.raises(BadArgument, match="cannot be changed after a verification that is detached"):
            request.require_repairable()
        with pytest.raises(BadArgument, match="none of these agents uses them"):
            await m.verify.begin(request)
        assert await m.runs.list() == []


async def test_a_run_that_is_driven_is_not_resumed_and_its_driver_is_named(tmp_path: Path) -> None:
    async with muster.open(settings=load_settings(tmp_path / "home", folder=tmp_path, environment={})) as m:
        run = await m.start("ask", {"agent": "sim/slow", "prompt": "hello"})
        async for event in run.events():
            if event.kind == "run.started":
                break
        with pytest.raises(Conflict, match="is being executed by"):
            await m.resume(run.id, budget_usd="5")
        assert (await run.run()).cap is None
        await run.cancel()
