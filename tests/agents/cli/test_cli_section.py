"""CLI agents from muster.toml: what is refused, what the process is given, and that the documentation is true."""

from dataclasses import fields
from typing import Any

import pytest

from muster.agents.cli.dialect import AnswerPaths
from muster.agents.processes import system
from muster.domain.call import ask
from muster.domain.errors import BadConfiguration
from muster.settings.file import load_configuration
from muster.settings.sections import CliSection
from muster.sim.cli_agent.behaviors import BEHAVIORS
from muster.sim.cli_agent.script import STEPS

from .stage import BARE, DOCUMENT, Stage, blocks, call, declared, section_of

ANSWER = {"output": "jsonl", "answer": "$.a"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"command": []}, "its command is empty"),
        ({"command": [""]}, "its command is empty"),
        ({"command": ["{prompt}"]}, "its program depends on the request"),
        ({"command": ["x", "--model", "{model}"]}, "it has no model"),
        ({"command": ["x", "--model", "{model}"], "model": ""}, "it has no model"),
        ({"command": ["x", "{session}"]}, 'its command has "{session}"'),
        ({"command": ["x"], "resume": ["--continue"]}, 'its resume arguments have no "{session}"'),
        ({"command": ["x", "{budget}"], "budget_usd": None}, "budget_usd is not set"),
        ({"command": ["x", "{budget}"], "budget_usd": 0}, "budget_usd is not set"),
        ({"command": ["x"], "cost_usd": "$.cost"}, "cost_usd is for answers in JSON, and its output is text"),
        ({"command": ["x"], "output": "json"}, "answer is not set"),
        ({"command": ["x"], "output": "jsonl"}, "answer is not set"),
        ({"command": ["x"], "output": "json", "answer": "$.a", "delta": "$.b"}, "delta is for JSON lines"),
        ({"command": ["x"], **ANSWER, "tool_id": "$.b"}, "tool_id has no effect without tool_name"),
        (
            {"command": ["x"], **ANSWER, "tool_name": "$.b", "tool_done": "$.c"},
            "tool_done has no effect without tool_id",
        ),
        ({"command": ["x"], **ANSWER, "session": "a.b"}, "agents.one: session: 'a.b' is not a JSONPath"),
        ({"command": [], "pass_env": ["NOT_SET"]}, "its command is empty"),
    ],
)
def test_a_section_that_can_never_work_is_refused(settings: dict[str, Any], message: str, tmp_path: Any) -> None:
    section = section_of(**settings)
    with pytest.raises(BadConfiguration) as caught:
        Stage(None, None, tmp_path).agent(section)  # type: ignore[arg-type]
    assert message in caught.value.message
    assert "one" in caught.value.message
    assert caught.value.suggestions


async def test_a_process_gets_only_what_it_is_given(stage: Stage) -> None:
    variables = {**BARE, "SECRET": "s", "NAMED": "n", "HOME": "/h", system.TOKEN_VARIABLE: "outer"}
    outer = Stage(stage.processes, stage.remembered, stage.folder, variables)
    agent = outer.agent(section_of(command=("env",), env={"OWN": "o"}, pass_env=("NAMED",)))
    got = dict(line.split("=", 1) for line in (await call(agent)).text.splitlines())
    assert got.keys() == {"PATH", "LANG", "NAMED", "OWN", system.TOKEN_VARIABLE}
    assert (got["NAMED"], got["OWN"]) == ("n", "o")
    assert got[system.TOKEN_VARIABLE].startswith("outer,")


async def test_a_request_adds_variables_of_its_own_for_one_call(stage: Stage) -> None:
    agent = stage.agent(section_of(command=("env",), env={"MODE": "usual", "KEPT": "yes"}))
    got = (await call(agent, environment={"MODE": "strict"})).text.splitlines()
    assert {"MODE=strict", "KEPT=yes"} <= set(got)
    assert "MODE=usual" in (await call(agent)).text.splitlines()


async def test_a_variable_that_is_passed_on_must_be_set_when_the_agent_is_asked(stage: Stage) -> None:
    agent = stage.agent(section_of(command=("env",), pass_env=("NOT_SET",)))
    with pytest.raises(BadConfiguration, match="agent 'one' needs NOT_SET, which is not set"):
        agent.quote(ask("hello"))
    with pytest.raises(BadConfiguration, match="agent 'one' needs NOT_SET, which is not set"):
        await call(agent)
    assert stage.started == 0


async def test_it_works_where_the_section_says(stage: Stage) -> None:
    (stage.folder / "there").mkdir()
    assert (await call(stage.agent(section_of(command=("pwd",))))).text == str(stage.folder)
    agent = stage.agent(section_of(command=("pwd",), working_dir="there"))
    assert (await call(agent)).text == str(stage.folder / "there")


async def test_a_quote_counts_what_goes_in(stage: Stage) -> None:
    agent = stage.rehearsal()
    short, long = agent.quote(ask("a")), agent.quote(ask("a" * 4_000))
    assert (short.most, long.tokens - short.tokens) == (500_000, 999)


@pytest.mark.parametrize("block", blocks("toml"))
def test_every_declaration_of_the_documentation_loads(block: str, stage: Stage) -> None:
    path = stage.folder / "muster.toml"
    path.write_text(block)
    stage = Stage(stage.processes, stage.remembered, stage.folder, {**BARE, "HOME": "/h"})
    for section in load_configuration(path).agents.values():
        if isinstance(section, CliSection):
            assert stage.agent(section).quote(ask("hello")).tokens > 0


def test_the_documentation_names_every_field_mood_and_step() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    names = {*(set(CliSection.__struct_fields__) - {"kind"}), *BEHAVIORS, *STEPS}
    assert sorted(name for name in names if f"`{name}`" not in text and f"`{name} " not in text) == []


def test_every_place_is_a_field_of_the_section() -> None:
    assert {place.name for place in fields(AnswerPaths)} <= set(CliSection.__struct_fields__)
    assert declared("simulated").tool_failed is not None
