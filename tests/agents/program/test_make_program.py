"""Programs as muster.toml declares them: folder, environment, time and money."""

import os
from pathlib import Path
from typing import Any

import pytest

from muster.agents.base import Agent
from muster.agents.processes import system
from muster.agents.processes.registry import ProcessRegistry
from muster.app.agent_kinds.base import profile_of
from muster.app.agent_kinds.programs import make_program
from muster.domain.agent import PHASE_SECONDS, Timeouts
from muster.domain.call import ask
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration
from muster.settings.file import Misfit, fit
from muster.settings.sections import ProgramSection
from tests.agents.program.stage import PATIENT, PROPOSAL, context, request_for, spelled

VARIABLES = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SECRET_KEY": "hidden", "HOME": "/root", "WANTED": "yes"}


def section(**fields: Json) -> ProgramSection:
    return fit({"kind": "program", **fields}, ProgramSection, ("agents", "critic"))


def make(processes: ProcessRegistry, folder: Path, variables: dict[str, str] | None = None, **fields: Json) -> Agent:
    declared = section(**fields)
    return make_program(
        "critic",
        declared,
        profile=profile_of("critic", declared),
        processes=processes,
        variables=VARIABLES if variables is None else variables,
        folder=folder,
    )


async def environment(agent: Agent) -> dict[str, str]:
    lines = (await agent.call(ask("x"), PATIENT)).text.splitlines()
    return dict(line.split("=", 1) for line in lines)


async def test_a_program_gets_only_what_it_is_given(processes: ProcessRegistry, tmp_path: Path) -> None:
    agent = make(processes, tmp_path, command=["env"], mode="plain", env={"MY_VAR": "mine"}, pass_env=["WANTED"])
    found = await environment(agent)
    token = found.pop(system.TOKEN_VARIABLE)
    assert token.startswith("muster-")
    assert found == {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "MY_VAR": "mine", "WANTED": "yes"}


async def test_a_program_carries_the_token_of_the_house_around_ours_too(
    processes: ProcessRegistry, tmp_path: Path
) -> None:
    variables = {**VARIABLES, system.TOKEN_VARIABLE: "muster-outer.1"}
    found = await environment(make(processes, tmp_path, variables, command=["env"], mode="plain"))
    outer, _, own = found[system.TOKEN_VARIABLE].partition(",")
    assert outer == "muster-outer.1"
    assert own.startswith("muster-")


async def test_a_variable_that_is_passed_on_must_be_set_when_the_program_is_asked(
    processes: ProcessRegistry, tmp_path: Path
) -> None:
    agent = make(processes, tmp_path, command=["env"], pass_env=["WANTED", "MISSING_KEY"])
    assert agent.profile.name == "critic"
    with pytest.raises(BadConfiguration, match="MISSING_KEY, which is not set"):
        agent.quote(ask("x"))
    with pytest.raises(BadConfiguration, match="MISSING_KEY, which is not set") as caught:
        await agent.call(ask("x"), PATIENT)
    assert "export MISSING_KEY=…" in caught.value.suggestions


def test_what_is_in_the_environment_shows_nowhere(processes: ProcessRegistry, tmp_path: Path) -> None:
    agent = make(processes, tmp_path, command=["env"], pass_env=["SECRET_KEY"])
    assert "hidden" not in repr(agent) + repr(vars(agent))


def script_in(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    script = folder / "critic.sh"
    script.write_text(f"#!/bin/sh\ncat >/dev/null\npwd >&2\nprintf %s '{spelled(PROPOSAL)}'\n")
    script.chmod(0o755)


@pytest.mark.parametrize("working_dir", [None, "inner", "absolute"])
async def test_a_relative_program_is_found_in_its_folder(
    processes: ProcessRegistry, tmp_path: Path, working_dir: str | None
) -> None:
    folder = tmp_path if working_dir is None else tmp_path / working_dir
    script_in(folder)
    fields: dict[str, Any] = {} if working_dir is None else {"working_dir": working_dir}
    if working_dir == "absolute":
        fields = {"working_dir": str(folder)}
    reply = await make(processes, tmp_path, command=["./critic.sh"], **fields).call(ask("x"), PATIENT)
    assert reply.data == PROPOSAL
    assert reply.trace is not None
    assert reply.trace.log.strip() == str(folder.resolve())


async def test_what_one_call_can_cost_is_reserved(processes: ProcessRegistry, tmp_path: Path) -> None:
    assert make(processes, tmp_path, command=["env"], budget_usd=0.05).quote(ask("x")).most == 50_000
    assert make(processes, tmp_path, command=["env"]).quote(ask("x")).most == 0


def test_a_section_says_everything_or_only_the_command() -> None:
    full = section(
        command=["python3", "agent.py"], working_dir="/opt/agents", env={"MY_VAR": "val"}, timeout_secs=120, mode="chat"
    )
    assert (full.command, full.mode, full.timeout_secs) == (("python3", "agent.py"), "chat", 120)
    assert (full.working_dir, full.env) == (Path("/opt/agents"), {"MY_VAR": "val"})
    least = section(command=["echo", "hi"])
    assert (least.command, least.mode) == (("echo", "hi"), "exec")
    assert (least.working_dir, least.env, least.timeout_secs) == (None, {}, None)


def test_a_mode_that_is_not_known_is_refused() -> None:
    with pytest.raises(Misfit):
        section(command=["x"], mode="json")


@pytest.mark.parametrize(
    ("timeout_secs", "left", "seconds"),
    [
        (42, 999.0, 42.0),
        (42, 6.5, 7.0),
        (None, 120.0, 120.0),
        (None, 0.0, 300.0),
        (None, 0.3, 1.0),
        (None, True, 300.0),
        (None, None, 300.0),
    ],
)
def test_a_call_may_take_its_own_time_or_what_is_left_of_the_phase(
    timeout_secs: int | None, left: float | None, seconds: float
) -> None:
    profile = profile_of("critic", section(command=["x"], timeout_secs=timeout_secs))
    said = {} if left is None else {PHASE_SECONDS: left}
    assert profile.allow(request_for(context(), **said), Timeouts()).call == seconds
    assert profile.allow(request_for(context() | said), Timeouts()).call == seconds
    assert profile.allow(request_for(context() | {PHASE_SECONDS: 3.0}, **said), Timeouts(), 2.0).call <= 2.0
