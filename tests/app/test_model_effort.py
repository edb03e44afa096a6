"""An effort for a whole run, a case or a member: every model that is asked is named with it, unless it has its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.app.kinds import KINDS
from muster.app.kinds.question_order import QuestionOrder
from muster.app.questions.ask import question_of
from muster.battles.order import BattleOrder, ScaleOrder
from muster.councils.order import CouncilOrder, MemberOrder
from muster.councils.policy import read_policy
from muster.domain.effort import ModelEffort
from muster.domain.order import order_fields
from muster.pool.chains.reading import read_chain
from muster.suites.spec import read_spec
from muster.testing.sim import RehearsalProcess

HIGH = ModelEffort.HIGH
TAKES_IT = {"ask", "suite", "battle", "scale", "deliberation", "chain"}


@pytest.fixture(scope="module")
def sim() -> Iterator[RehearsalProcess]:
    script = {"rules": [{"text": ".", "answer": "It is so."}]}
    with RehearsalProcess(script=script, thinking=True) as server:
        yield server


@pytest.fixture
def agents(sim: RehearsalProcess, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    sim.reset()
    monkeypatch.setenv("REHEARSAL_KEY", "anything")
    price = {"input": 1, "output": 10}
    gpt = {"kind": "openai", "model": "gpt-5-mini", "base_url": sim.openai, "key_env": "REHEARSAL_KEY", "price": price}
    return {"gpt": gpt, "other": gpt}


def test_the_kinds_that_ask_models_directly_take_an_effort() -> None:
    takes = {known.kind.workload for known in KINDS if known.kind.order and _takes(known.order)}
    assert takes == TAKES_IT


def _takes(order: type) -> bool:
    return any(field.name == "model_effort" for field in order_fields(order))


async def test_one_suite_compares_efforts(tmp_path: Path, agents: dict[str, Any]) -> None:
    tmp_path.joinpath("skill").mkdir()
    tmp_path.joinpath("skill/suite.yaml").write_text(SUITE)
    async with muster.open(tmp_path, agents=agents) as m:
        spec = read_spec({"path": str(tmp_path / "skill"), "agents": ["gpt", "gpt+low"], "model_effort": "high"})
        run = await (await m.start("suite", spec.stored())).wait()
        assert run.state == "completed", run.error
        asked = [(call.key, call.agent) for call in await m.runs.calls(run.id)]
        assert run.result["counts"] == {"passed": 4}
    usual = {agent for key, agent in asked if "/usual/" in key}
    quick = {agent for key, agent in asked if "/quick/" in key}
    assert usual == {"gpt+high", "gpt+low"}
    assert quick == {"gpt+minimal", "gpt+low"}


async def test_one_table_compares_three_efforts_of_two_models(tmp_path: Path, agents: dict[str, Any]) -> None:
    tmp_path.joinpath("skill").mkdir()
    tmp_path.joinpath("skill/suite.yaml").write_text(SUITE.replace("    model_effort: minimal\n", ""))
    agents["other"] = {**agents["gpt"], "model": "gpt-5"}
    names = [f"{agent}+{effort}" for agent in ("gpt", "other") for effort in ("low", "medium", "high")]
    async with muster.open(tmp_path, agents=agents) as m:
        run = await (await m.start("suite", {"path": str(tmp_path / "skill"), "agents": names})).wait()
        report = await m.report(run.id)
        table = await report.text("markdown")
        told = json.loads(await report.text("json"))["subjects"]
        calls = [call for call in await m.runs.calls(run.id) if call.reply is not None]
    assert "| Subject | Passed | 95% interval | Score | p50 | p95 | Thinking | Cost |" in table
    thought = {one["subject"]: one["thinking_tokens"] for one in told}
    assert thought == {
        name: sum(call.reply.usage.thinking for call in calls if call.reply and call.agent == name) for name in names
    }
    for agent in ("gpt", "other"):
        assert 0 < thought[f"{agent}+low"] < thought[f"{agent}+medium"] < thought[f"{agent}+high"]
    assert all(f"| {number:,} |" in table for number in thought.values())


async def test_what_is_ordered_of_each_kind_is_asked_with_the_effort(tmp_path: Path, agents: dict[str, Any]) -> None:
    async with muster.open(tmp_path, agents=agents) as m:
        battle = m.battles.ordered(BattleOrder(agent="gpt", counterpart="other", model_effort=HIGH))
        assert (battle.agent, battle.counterpart) == ("gpt+high", "other")
        scale = m.battles.ordered_scale(ScaleOrder(agents=("gpt", "other+low"), counterpart="gpt", model_effort=HIGH))
        assert scale.agents == ("gpt+high", "other+low")
        members = ("gpt", MemberOrder(agent="other", model_effort=ModelEffort.LOW))
        council = m.councils.ordered(CouncilOrder(question="Which?", agents=members, model_effort=HIGH))
        assert [member.name for member in council.members] == ["gpt+high", "other+low"]
        question = question_of(QuestionOrder(agent="gpt", prompt="Which?", model_effort=HIGH))
        assert question.agent == "gpt+high"


def test_the_members_of_a_policy_have_efforts_of_their_own(tmp_path: Path) -> None:
    policy = tmp_path / "council.yaml"
    policy.write_text("agents:\n  - {agent: gpt, model_effort: low}\n  - {agent: gpt, model_effort: high}\n")
    assert [member.name for member in read_policy(policy).members] == ["gpt+low", "gpt+high"]


def test_the_steps_of_a_chain_that_ask_agents_are_asked_with_the_effort(tmp_path: Path) -> None:
    file = tmp_path / "chain.yaml"
    file.write_text(CHAIN)
    chain = read_chain(file)
    assert [step.agent for step in chain.with_effort("high").steps] == ["gpt+high", "gpt+low", ""]
    assert chain.with_effort(None) == chain


async def test_an_effort_does_not_change_who_judges_where_nobody_is_named(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        plain = m.battles.spec("openai/gpt-5-mini", goal="An answer.")
        assert m.battles.spec("openai/gpt-5-mini+high", goal="An answer.").judge == plain.judge != ""


async def test_an_agent_that_is_no_model_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        question = question_of(QuestionOrder(agent="sim/echo", prompt="hi", model_effort=HIGH))
        with pytest.raises(muster.BadConfiguration, match="'sim/echo' cannot be asked with an effort"):
            await m.start_question(question, m.runs.options())


SUITE = """\
schema_version: 1
skill_or_agent: skill
cases:
  - id: skill/usual
    input: {messages: [{role: user, content: Is it so?}]}
    expected: {output: [{kind: contains, value: so}]}
  - id: skill/quick
    model_effort: minimal
    input: {messages: [{role: user, content: Is it so?}]}
    expected: {output: [{kind: contains, value: so}]}
"""

CHAIN = """\
name: think
steps:
  - {name: first, agent: gpt, prompt: Think.}
  - {name: second, agent: gpt+low, prompt: Think again.}
  - {name: third, command: [echo, done]}
"""
