"""A kind of work that declares its order, and how that becomes a spec, has a command, routes and a tool."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mcp import Client
from muster.api.app import create_app
from muster.app import Muster, open_muster
from muster.app.kinds import AppKind
from muster.app.orders import start_order
from muster.app.service import Service
from muster.app.serving.jobs import JobIntake
from muster.cli.line import CliGroup, CommandEntry
from muster.cli.line.table import CommandTable
from muster.cli.main import perform
from muster.cli.outcome import ReportedEnding
from muster.cli.runs.endings import ending_of_kind
from muster.cli.work.table import command_of
from muster.domain.errors import BadArgument
from muster.domain.kind import KindReport
from muster.domain.named import named_agents
from muster.engine.queue.base import QueuedJob
from muster.mcp.server import TOOLS, Coordinator
from muster.mcp.tools.work import tool_of
from muster.settings import load_settings

from .surveys import SURVEY, SurveyOrder

GROUP = CliGroup("muster", CommandEntry("Surveys.", commands={SURVEY.command_name: command_of(AppKind(kind=SURVEY))}))
MODELS = """
[serve]
models = ["sim/echo"]
[agents.keyless]
kind = "anthropic"
model = "claude-haiku-5-5"
"""
WORDS = {"question": "blue", "agents": ["sim/echo"], "repeats": 2}
RESULT = {"answers": {"blue": 2}}


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Muster]:
    """Open a project whose runs are driven as a server drives them."""
    (folder / "muster.toml").write_text(MODELS, encoding="utf-8")
    async with open_muster(settings=load_settings(folder / ".muster", folder=folder, environment={})) as muster:
        service = Service(muster)
        driving = asyncio.ensure_future(service.drive())
        try:
            yield muster
        finally:
            service.close()
            driving.cancel()
            await asyncio.wait({driving})


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, Muster]]:
    """Serve the project, with routes of surveys."""
    async with opened(folder) as muster:
        transport = httpx2.ASGITransport(create_app(muster, muster.settings, more=(AppKind(kind=SURVEY),)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client, muster


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_has_the_options_of_the_order(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(GROUP, ["survey", "--help"]) == 0
    text = capsys.readouterr().out
    for words in (SURVEY.about, "QUESTION", "--agent A", "--repeats", "--notes FILE", "--budget USD", "--detach"):
        assert words in text
    assert "--report" not in text  # a survey has none


def test_the_command_ends_with_the_result(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["survey", "blue", "--agent", "sim/echo", "--repeats", "2", "--name", "colours"]
    assert perform(GROUP, words) == 0
    assert json.dumps(RESULT) in capsys.readouterr().out
    assert perform(GROUP, [*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["name"] == "colours"


def test_the_command_refuses_what_is_out_of_bounds(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(GROUP, ["survey", "blue", "--agent", "sim/echo", "--repeats", "4"]) == 2
    assert "--repeats" in capsys.readouterr().err


def test_the_command_refuses_an_agent_that_is_not_there(in_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert perform(GROUP, ["survey", "blue", "--agent", "sim/echo", "--agent", "sim/nope"]) == 3
    assert "sim/nope" in capsys.readouterr().err
    assert perform(GROUP, ["survey", "blue", "--agent", "sim/echo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["calls"]["total"] == 1


async def test_a_request_starts_one_and_a_list_has_it(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, muster):
        started = await client.post("/api/quick-surveys", json=WORDS | {"id": "s1"})
        assert (started.status_code, started.json()["workload"]) == (202, "quick_survey")
        assert (await client.post("/api/quick-surveys", json=WORDS | {"id": "s1"})).status_code == 200
        run = await muster.runs.watch(await muster.runs.find("s1")).wait()
        assert run.result == RESULT
        listed = (await client.get("/api/quick-surveys")).json()
        assert [one["id"] for one in listed["runs"]] == ["s1"]


@pytest.mark.parametrize(
    ("more", "path"),
    [({"repeats": 4}, "repeats"), ({"notes": "a.txt"}, "notes"), ({"agents": []}, "agents"), ({"color": 1}, "color")],
)
async def test_a_request_is_refused_by_its_fields(tmp_path: Path, more: dict[str, Any], path: str) -> None:
    async with served(tmp_path) as (client, _):
        refused = await client.post("/api/quick-surveys", json=WORDS | more)
    assert refused.status_code == 400
    assert [one["path"] for one in refused.json()["error"]["fields"]] == [path]


async def test_a_request_names_agents_of_the_library_only(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        refused = await client.post("/api/quick-surveys", json=WORDS | {"agents": ["sim/echo", "sim/slow"]})
        keyless = await client.post("/api/quick-surveys", json=WORDS | {"agents": ["sim/echo", "keyless"]})
    assert refused.status_code == 400
    assert "sim/slow" in refused.json()["error"]["message"]
    (field,) = keyless.json()["error"]["fields"]
    assert (keyless.status_code, field["path"]) == (400, "agents[1]")
    assert field["message"] == "keyless needs an API key, and ANTHROPIC_API_KEY is not set"


async def test_the_page_has_a_form_from_the_description(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        described = (await client.get("/openapi.json")).json()
    post, get = (described["paths"]["/api/quick-surveys"][method] for method in ("post", "get"))
    form = {name: post["x-form"][name] for name in ("kind", "name", "about", "label", "place")}
    assert form == {
        "kind": "quick",
        "name": "Quick survey",
        "about": SURVEY.about,
        "label": "Start the quick survey",
        "place": "runs",
    }
    body = described["components"]["schemas"]["QuickSurveyBody"]["properties"]
    assert body["repeats"]["anyOf"][0]["maximum"] == 3
    assert "notes" not in body
    assert post["responses"]["202"]["content"]["application/json"]["schema"]
    assert get["responses"]["200"]["content"]["application/json"]["schema"]


async def test_a_tool_starts_one(tmp_path: Path) -> None:
    tool = tool_of(AppKind(kind=SURVEY))
    assert tool.name == "start_quick_survey"
    async with opened(tmp_path) as muster, Client(Coordinator(muster, {**TOOLS, tool.name: tool}).server()) as client:
        started = (await client.call_tool(tool.name, WORDS)).structured_content
        assert started is not None
        waited = await client.call_tool("wait", {"ids": [started["id"]], "timeout_secs": 60, "full": True})
        assert waited.structured_content is not None
        assert json.loads(waited.structured_content["runs"][0]["output"]) == RESULT
        refused = await client.call_tool(tool.name, WORDS | {"agents": ["sim/slow"]})
        assert refused.is_error
        refused = await client.call_tool(tool.name, WORDS | {"notes": "a.txt"})
        assert refused.is_error


async def test_python_starts_one(tmp_path: Path) -> None:
    order = SurveyOrder(question="blue", agents=("sim/echo",), repeats=2, run_tags=("colours",))
    async with opened(tmp_path) as muster:
        assert SURVEY.spec_of is not None
        handle = await muster.start(SURVEY.workload, SURVEY.spec_of(order))
        assert await handle.result() == RESULT
        run = await (await start_order(muster, order, kind=SURVEY)).wait()
        assert (run.result, run.tags) == (RESULT, ("colours",))


async def test_an_order_of_python_is_checked(tmp_path: Path) -> None:
    async with opened(tmp_path) as muster:
        with pytest.raises(BadArgument, match="repeats"):
            await start_order(muster, SurveyOrder(question="blue", agents=("sim/echo",), repeats=9), kind=SURVEY)


def test_agents_of_an_order_are_known_by_their_form() -> None:
    order = SurveyOrder(question="blue", agents=("sim/echo", "sim/slow"))
    assert list(named_agents(order)) == [("agents[0]", "sim/echo"), ("agents[1]", "sim/slow")]


def test_what_is_made_is_looked_for_only_under_names_that_are_not_written_down() -> None:
    written = {"list": CommandEntry("List them."), "worker": CommandEntry("Work.")}
    nowhere = CommandTable(written, "work.nowhere:COMMANDS", before="worker")
    assert nowhere["list"].about == "List them."
    first, *made, last = CommandTable(written, "work.table:made_commands", before="worker")
    assert (first, last) == ("list", "worker")
    assert {"council", "battle", "scale"} <= set(made)  # each further kind adds its own
    with pytest.raises(ModuleNotFoundError):
        nowhere.get("survey")


def job(data: dict[str, Any], id_: str = "j1") -> QueuedJob:
    return QueuedJob(id=id_, queue="runs", data=data)


async def test_a_job_starts_work_of_any_kind(tmp_path: Path) -> None:
    asked = {"start": "question", "agent": "sim/echo", "prompt": "blue"}
    async with opened(tmp_path) as muster:
        intake = JobIntake(muster)
        run = await intake.accept(job(asked))
        assert (run.id, run.workload, run.spec["prompt"]) == ("j1", "ask", "blue")
        assert (await intake.accept(job(asked))).id == "j1"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"start": "party"}, "must name a run"),
        ({"prompt": "blue"}, "must name a run"),
        ({"start": "question", "agent": "sim/echo"}, "prompt"),
        ({"start": "question", "agent": "sim/slow", "prompt": "blue"}, "sim/slow"),
        ({"start": "chain", "files": ["a.yaml"], "chain": "a"}, "files"),
        ({"start": "verification", "agents_file": "a.yaml"}, "agents_file"),
        ({"start": "battle", "agentId": "sim/echo", "budgetUsd": 1e-9}, "budgetUsd must have at most six"),
        ({"start": "battle", "agentId": ["sim/echo"]}, "agentId: must be a string$"),
    ],
)
async def test_a_job_is_refused_by_its_fields(tmp_path: Path, data: dict[str, Any], said: str) -> None:
    async with opened(tmp_path) as muster:
        with pytest.raises(BadArgument, match=said):
            await JobIntake(muster).accept(job(data))


@dataclass(frozen=True, kw_only=True)
class SurveySummary:
    """What a survey came to."""

    answers: Mapping[str, int]
    ok: bool = True

    @property
    def verdict(self) -> str:
        """How many answers there are."""
        return f"{sum(self.answers.values())} answers"


def test_json_of_a_kind_with_a_report_has_all_that_its_summary_has() -> None:
    ending = ending_of_kind(replace(SURVEY, report=KindReport(function="", formats=())))
    assert isinstance(ending, ReportedEnding)
    told = {"ok": True, "verdict": "2 answers", "answers": {"blue": 2}}
    assert ending.view(SurveySummary(answers={"blue": 2})) == told
