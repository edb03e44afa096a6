"""What `muster.open` is told is used, or it says why not: project, store, settings, and agents of the program."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.agents.base import OnDelta
from muster.agents.scripted import scripted
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request
from muster.domain.errors import BadArgument, BadConfiguration
from muster.domain.script import Line, Script
from muster.settings import load_settings

PROJECT = '[agents.desk]\nkind = "scripted"\nmodel = "refuse"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an agent; the working folder is another one."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "muster.toml").write_text(PROJECT, encoding="utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return folder


async def test_a_project_brings_its_settings_and_its_store(project: Path) -> None:
    async with muster.open(project=project) as m:
        reply = await m.ask("desk", "hello")
    assert reply.text == "I will not help with that."
    assert (project / ".muster" / "muster.db").is_file()
    assert list(Path.cwd().iterdir()) == []


async def test_a_store_can_be_moved_away_from_its_project(project: Path, tmp_path: Path) -> None:
    async with muster.open(tmp_path / "store", project=str(project)) as m:
        await m.ask("desk", "hello")
    assert (tmp_path / "store" / "muster.db").is_file()
    assert not (project / ".muster").exists()


async def test_the_folder_of_a_project_is_no_store(project: Path) -> None:
    with pytest.raises(BadArgument, match="is the folder of a project") as caught:
        async with muster.open(project):
            pass
    assert caught.value.suggestions[0] == f"open(project={str(project)!r})"
    assert not (project / "muster.db").exists()


async def test_a_project_must_be_a_folder(project: Path) -> None:
    with pytest.raises(BadArgument, match="not a folder"):
        async with muster.open(project=project / "muster.toml"):
            pass


@pytest.mark.parametrize("names", [("store",), ("project",), ("store", "project")])
async def test_settings_leave_nothing_else_to_say(project: Path, names: tuple[str, ...]) -> None:
    settings = load_settings(folder=project, environment={})
    folders: dict[str, Any] = dict.fromkeys(names, project)
    with pytest.raises(BadArgument, match="cannot be used together"):
        async with muster.open(settings=settings, **folders):
            pass


async def test_a_store_beside_a_named_database_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_DATABASE_URL", "postgresql://someone@127.0.0.1:1/none")
    with pytest.raises(BadArgument, match="would be ignored"):
        async with muster.open(project / ".muster"):
            pass


@pytest.mark.postgres
async def test_a_store_may_be_the_address_of_a_database(project: Path, database_url: str) -> None:
    async with muster.open(database_url, project=project) as m:
        await m.ask("desk", "hello")
        info = await m.store.info()
    assert info["kind"] == "postgresql"


class Critic:
    """An agent of a program, as the protocol says."""

    def __init__(self) -> None:
        self.profile = Profile(name="critic", limiter="critic")
        self.closed = 0

    def quote(self, request: Request) -> Quote:
        return Quote(most=muster.Microdollars(20), tokens=10)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        return Reply(text=f"{request.messages[-1].text}: dull", cost=muster.Microdollars(7))

    async def close(self) -> None:
        self.closed += 1


async def criticize(request: Request) -> str:
    """Answer as a function."""
    return f"{request.messages[-1].text}: nice"


async def test_agents_are_functions_objects_and_settings(tmp_path: Path) -> None:
    critic = Critic()
    agents: Mapping[str, muster.GivenAgent] = {
        "function": criticize,
        "object": critic,
        "settings": {"kind": "scripted", "model": "refuse"},
        "scripted": scripted("any", script=Script(otherwise=Line(text="as written"))),
    }
    async with muster.open(tmp_path / "store", agents=agents) as m:
        answers = {name: (await m.ask(name, "the play")).text for name in agents}
        costs = await m.costs()
        assert m.agents.list() == tuple(agents)
    assert answers == {
        "function": "the play: nice",
        "object": "the play: dull",
        "settings": "I will not help with that.",
        "scripted": "as written",
    }
    assert costs.total.billed == 7
    assert critic.closed == 1


async def test_an_agent_of_the_program_goes_before_one_of_the_file(project: Path) -> None:
    async with muster.open(project=project, agents={"desk": criticize}) as m:
        assert (await m.ask("desk", "it")).text == "it: nice"


async def test_an_agent_that_a_program_did_not_give_is_unknown_when_its_run_is_resumed(tmp_path: Path) -> None:
    async with muster.open(tmp_path / "store", agents={"critic": criticize}) as m:
        await m.ask("critic", "it")
    async with muster.open(tmp_path / "store") as m:
        with pytest.raises(BadConfiguration, match="unknown agent 'critic'"):
            await m.ask("critic", "it")


def blocking(request: Request) -> str:
    return ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (blocking, "is not async"),
        (Critic, "is not an agent"),
        ("anthropic/claude-haiku-5-5", "is not an agent"),
        ({"model": "x"}, 'missing key "kind"'),
        ({"kind": "openai", "modle": "x"}, "did you mean 'model'"),
    ],
)
async def test_what_cannot_be_an_agent_is_refused_before_anything_is_opened(
    tmp_path: Path, given: Any, words: str
) -> None:
    with pytest.raises(BadArgument, match=words):
        async with muster.open(tmp_path / "store", agents={"critic": given}):
            pass
    assert not (tmp_path / "store").exists()
