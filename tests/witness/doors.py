"""Records what every door takes, and what of a start is stored: `python -m tests.witness.doors`, from the root.

A door is a way to start work: a command, a request over HTTP, a tool of MCP, a job of the queue. Recorded are the
options of every command, the OpenAPI document, the tools, and for many starts the row of the run: its spec, its options
and the digest by which the same start is known again.
"""

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from muster.app.serving.jobs import JobIntake
from muster.cli.commands import app
from muster.cli.line.commands import SETTINGS, CliGroup
from muster.cli.line.parameters import CliOption
from muster.cli.line.types import NumberType
from muster.engine.queue.base import QueuedJob
from tests import forkserver
from tests.mcp.coordinated import coordinated, project_in
from tests.witness.door_starts import COMMANDS, FILES, JOBS, REQUESTS, TOOLS, WORKLOADS

DOORS = Path(__file__).parent.parent / "data/witness-doors"
PATIENCE = 120.0
COLUMNS = ("workload", "spec", "name", "tags", "timeout", "concurrency", "dispatch", "request_key", "request_digest")
Record = dict[str, Any]


def commands() -> Record:
    """Return the parameters of every command."""
    return {path: [_parameter(each) for each in context.command.params] for path, context in _walk(_root(), "muster")}


def _root() -> click.Context:
    return click.Context(app, info_name="muster", **SETTINGS)


def _walk(context: click.Context, path: str) -> Iterator[tuple[str, click.Context]]:
    yield path, context
    group = context.command
    if isinstance(group, CliGroup) and (default := group.default()) is not None:
        yield f"{path} (by itself)", click.Context(default, info_name=path, **SETTINGS)
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from _walk(click.Context(command, info_name=name, parent=context, **SETTINGS), f"{path} {name}")


def _parameter(each: click.Parameter) -> Record:
    found: Record = {
        "names": [*each.opts, *each.secondary_opts],
        "metavar": each.metavar,
        "required": each.required,
        "many": each.nargs == -1 or each.multiple,
        "default": None if callable(each.default) else json.loads(json.dumps(each.default, default=str)),
    }
    if isinstance(each.type, NumberType):
        found |= {"min": each.type.least, "max": each.type.most}
    if isinstance(each, CliOption):
        found |= {"heading": each.heading, "shown": each.shown, "hidden": each.hidden}
    return found | {"help": getattr(each, "help", None)}


def requests(folder: Path) -> tuple[Record, Record]:
    """Return the OpenAPI document, and the row of every start over HTTP."""
    project = project_in(folder)
    with project.serve() as server:
        described = server.get("/openapi.json").json
        started = {}
        for name, (path, body) in REQUESTS.items():
            answer = server.post(path, body, idempotency_key=f"key-{name}")
            assert answer.status in (200, 201, 202), (name, answer.body)
            started[name] = answer.json.get("id") or answer.json.get("runId") or answer.json.get("jobId")
    return described, rows(folder, started)


async def tools(folder: Path) -> tuple[list[Record], Record]:
    """Return what every tool takes, and the row of every start by a tool."""
    async with coordinated(folder, more="", drives=False) as (desk, _):
        listed = [tool.model_dump(mode="json", exclude_none=True) for tool in (await desk.client.list_tools()).tools]
        started = {}
        for name, (tool, given) in TOOLS.items():
            answer = await desk.call(tool, **given, request_key=name)
            started[name] = answer.get("id") or answer["ids"][-1]
    return listed, rows(folder, started)


async def jobs(folder: Path) -> Record:
    """Return the row of every start by a job of the queue."""
    async with coordinated(folder, more="", drives=False) as (_, muster):
        intake = JobIntake(muster)
        made = {name: QueuedJob(id=name, queue=queue, data=data) for name, (queue, data) in JOBS.items()}
        started = {name: (await intake.accept(job)).id for name, job in made.items()}
    return rows(folder, started)


def command_starts(folder: Path) -> Record:
    """Return the row of every start by a command."""
    project = project_in(folder)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    started = {}
    for name, words in COMMANDS.items():
        known = _ids(folder)
        done = forkserver.run(
            "muster", words, folder=folder, environment=project.environment, stdin=b"", timeout=PATIENCE
        )
        made = [one for one in _ids(folder) if one not in known]
        assert made, (name, done)
        started[name] = made[0]
    return rows(folder, started)


def _ids(folder: Path) -> list[str]:
    """Return the runs of a store that no other run has started, oldest first."""
    if not (folder / ".muster/muster.db").exists():
        return []
    with closing(sqlite3.connect(folder / ".muster/muster.db")) as store:
        return [run for (run,) in store.execute("SELECT id FROM runs WHERE parent_id IS NULL ORDER BY created_at, id")]


def rows(folder: Path, started: Mapping[str, str]) -> Record:
    """Return what is stored of runs by the names of their starts, the same in every folder."""
    with closing(sqlite3.connect(folder / ".muster/muster.db")) as store:
        store.row_factory = sqlite3.Row
        return {name: _row(store, folder, run) for name, run in started.items()}


def _row(store: sqlite3.Connection, folder: Path, run: str) -> Record:
    row = store.execute(f"SELECT {', '.join(COLUMNS)}, lineage FROM runs WHERE id = ?", (run,)).fetchone()
    cap = store.execute("SELECT cap FROM budgets WHERE id IN (?, ?)", (row["lineage"], f"run/{run}")).fetchone()
    children = store.execute(
        "SELECT parent_key, spec FROM runs WHERE parent_id = ? ORDER BY parent_key LIMIT 3", (run,)
    ).fetchall()
    found = {name: row[name] for name in COLUMNS} | {"cap": cap and cap["cap"]}
    found |= {name: json.loads(found[name]) for name in ("spec", "tags", "dispatch") if found[name]}
    if row["workload"] in WORKLOADS:  # its children are stored in one order
        found["children"] = {child["parent_key"]: json.loads(child["spec"]) for child in children}
    text = json.dumps(found).replace(str(folder), "/folder").replace(run, "RUN")
    known: Record = json.loads(text)
    return known


def record() -> Iterator[tuple[Path, Any]]:
    """Yield every record with its place."""
    yield DOORS / "commands.json", commands()
    with tempfile.TemporaryDirectory() as folder:
        described, started = requests(Path(folder))
        yield DOORS / "openapi.json", described
        yield DOORS / "request-starts.json", started
    with tempfile.TemporaryDirectory() as folder:
        listed, started = asyncio.run(tools(Path(folder)))
        yield DOORS / "tools.json", listed
        yield DOORS / "tool-starts.json", started
    with tempfile.TemporaryDirectory() as folder:
        yield DOORS / "job-starts.json", asyncio.run(jobs(Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        yield DOORS / "command-starts.json", command_starts(Path(folder))


def main() -> None:
    """Write all records."""
    for path, found in record():
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
