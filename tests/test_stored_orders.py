"""What is said at a door is what is stored of the run, at both bounds of every number, whatever lies in between."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mcp import Client
from muster.api.app import create_app
from muster.app import Muster, open_muster
from muster.app.kinds import AppKind, made_at
from muster.app.orders import start_of
from muster.app.serving.jobs import START, JobIntake
from muster.app.serving.order_models import order_model
from muster.domain.doors import Door
from muster.domain.money import to_usd
from muster.domain.order import DeclaredField, element_of, is_many, order_fields
from muster.domain.run import Run
from muster.domain.run_order import MAX_SECONDS
from muster.engine.queue.base import QueuedJob
from muster.mcp.server import Coordinator
from muster.mcp.tools.work import tool_of
from muster.settings import load_settings
from tests.mcp.coordinated import Desk, project_in

ECHO, SLOW = "sim/echo", "sim/slow"
JUDGED: dict[str, Any] = {"agent": ECHO, "counterpart": ECHO, "goal": "A table", "judge": SLOW}
# What must be said besides the numbers, so that none of them is in another's way.
SAID: Mapping[str, dict[str, Any]] = {
    "task": {"prompt": "Write."},
    "question": {"agent": ECHO, "prompt": "Hello"},
    "chain": {"chain": "greet", "input": {"topic": "bridges"}},
    "suite": {"suites": ("smoke",), "agents": (ECHO,), "judge": ECHO},
    "council": {"question": "Why?", "agents": (ECHO, SLOW)},
    "battle": JUDGED,
    "scale test": JUDGED | {"reviser": ECHO},
    "verification": {"files": "staged"},
}
# Numbers that not every agent and not every kind of work takes.
LEFT_OUT = {("task", "max_turns"): "of Claude Code alone"}
REQUESTED = "REQUEST_TIMEOUT_MS"  # the operator's limit, which a battle has over a network


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a library, in a git repository."""
    project_in(tmp_path)
    (tmp_path / "verify.yaml").write_text("agents: [{name: a, prompt: Look., model: sim/echo}]", encoding="utf-8")
    (tmp_path / "source.py").write_text("x = 1\n", encoding="utf-8")
    for words in (["init", "-q"], ["add", "source.py"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture
async def muster(project: Path) -> AsyncIterator[Muster]:
    variables = {REQUESTED: str(MAX_SECONDS * 1000), "PATH": os.environ["PATH"]}
    async with open_muster(settings=load_settings(project / ".muster", folder=project, environment=variables)) as m:
        yield m


def numbers(known: AppKind, door: Door) -> Iterator[DeclaredField]:
    """Yield the numbers that can be said at a door."""
    for one in order_fields(known.order):
        is_number = not is_many(one.kind) and element_of(one.kind)[0] in (int, float)
        if is_number and one.at(door) and (known.kind.word, one.name) not in LEFT_OUT:
            yield one


def said(known: AppKind, door: Door, *, most: bool) -> dict[str, Any]:
    """Return numbers at a bound, by their fields; a number without that bound is left out."""
    found = {}
    for one in numbers(known, door):
        bounds = one.declared
        low = bounds.min if bounds.above is None else bounds.above + 0.25
        bound = bounds.max if most else low
        if bound is not None:
            found[one.name] = element_of(one.kind)[0](bound)
    return found


def stored(run: Run) -> dict[str, list[Any]]:
    """Return everything that is stored of a run, by its names."""
    found: dict[str, list[Any]] = {}

    def take(value: Any) -> None:
        for name, inner in value.items() if isinstance(value, Mapping) else ():
            found.setdefault(name, []).append(inner)
            take(inner)

    take(run.spec)
    own = {"budget_usd": None if run.cap is None else to_usd(run.cap), "timeout_secs": run.timeout}
    for name, value in (own | {"concurrency": run.concurrency}).items():
        found.setdefault(name, []).append(value)
    return found


def lost(known: AppKind, run: Run, given: Mapping[str, Any]) -> list[str]:
    """Return the numbers that were said and are stored otherwise; what is as usual need not be stored."""
    kept, fields = stored(run), {one.name: one for one in order_fields(known.order)}
    return [
        f"{name}: {value!r} is stored as {kept.get(name)}"
        for name, value in given.items()
        if value not in kept.get(name, [fields[name].default])
        and (name in kept or f"{value:g}" != fields[name].declared.shown)
    ]


def sent(known: AppKind, door: Door, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON that says something at a door."""
    order = known.tool_order if door is Door.TOOL else known.order
    names = order_model(order, door, name="Sent", camel=known.doors.camel and door is not Door.TOOL).names()
    kept = {names[name]: value for name, value in {**SAID[known.kind.word], **given}.items() if name in names}
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]  # lists in place of tuples


BOUNDS = pytest.mark.parametrize("most", [False, True], ids=["least", "most"])


def each_at(door: Door) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("known", made_at(door), ids=lambda known: known.kind.word)


@BOUNDS
@each_at(Door.JOB)
async def test_what_a_job_says_is_stored(known: AppKind, most: bool, muster: Muster) -> None:
    given = said(known, Door.JOB, most=most)
    data = {START: known.kind.word} | sent(known, Door.JOB, given)
    run = await JobIntake(muster).accept(QueuedJob(id="j1", queue="runs", data=data))
    assert lost(known, run, given) == []


@BOUNDS
@each_at(Door.REQUEST)
async def test_what_a_request_says_is_stored(known: AppKind, most: bool, muster: Muster) -> None:
    given = said(known, Door.REQUEST, most=most)
    transport = httpx2.ASGITransport(create_app(muster, muster.settings))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        path = known.doors.path or f"/api/{known.kind.plural.replace(' ', '-')}"
        answer = await client.post(path, json=sent(known, Door.REQUEST, given))
    assert answer.status_code == 202, answer.text
    assert lost(known, await only_run(muster), given) == []


@BOUNDS
@each_at(Door.TOOL)
async def test_what_a_tool_is_told_is_stored(known: AppKind, most: bool, muster: Muster) -> None:
    given = said(known, Door.TOOL, most=most)
    async with Client(Coordinator(muster).server()) as client:
        await Desk(client).call(tool_of(known).name, **sent(known, Door.TOOL, given))
    assert lost(known, await only_run(muster), given) == []


@BOUNDS
@each_at(Door.COMMAND)
async def test_what_is_ordered_here_is_stored(known: AppKind, most: bool, muster: Muster) -> None:
    given = said(known, Door.COMMAND, most=most)
    order = known.order(**SAID[known.kind.word] | given)
    handle = await start_of(known)(muster, order)
    run = await handle.run()
    await muster.runs.cancel(run.id)
    assert lost(known, run, given) == []


async def only_run(muster: Muster) -> Run:
    (run,) = await muster.runs.page(roots=True)
    return run
