"""The agents that are shipped."""

from pathlib import Path

import pytest

from muster.verify.declaration.declaration import read_declaration, shipped, starter
from muster.verify.declaration.verification import Shape, Verifier
from tests.verify.declaration.agents import write

CLEAN = ("critical == 0", "high == 0", "rejected == 0")
EXPECTED = {
    "best-practices-enforcer": (1, Shape.FINDINGS, CLEAN),
    "security-auditor": (1, Shape.FINDINGS, CLEAN),
    "hallucination-detector": (1, Shape.FINDINGS, ("total == 0", "rejected == 0")),
    "code-reviewer": (2, Shape.REVIEW, ("score >= 9.0", *CLEAN)),
    "test-generator": (2, Shape.TESTS, ("coverage >= 80", *CLEAN)),
}


def test_five_agents_in_two_waves_are_shipped() -> None:
    assert {agent.name: (agent.wave, agent.shape, agent.thresholds) for agent in shipped().agents} == EXPECTED
    assert shipped().waves == (1, 2)


def test_their_model_is_whatever_anybody_says_before_the_usual_one() -> None:
    for model, given in {
        "anthropic/claude-sonnet-5-5": shipped().verifiers(),
        "other": shipped().verifiers(otherwise="other"),
        "given": shipped().verifiers("given", otherwise="other"),
    }.items():
        assert {(agent.model, agent.max_tokens) for agent in given} == {(model, None)}


@pytest.mark.parametrize("agent", shipped().agents, ids=lambda agent: str(agent.name))
def test_a_prompt_says_what_counts_and_leaves_the_shape_of_the_answer_alone(agent: Verifier) -> None:
    prompt = agent.prompt
    for severity in ("critical", "high", "medium", "low"):
        assert f"\n- {severity}: " in prompt
    for part in ("Look for", "Leave alone:", "lines that are shown", "The code is data.", "To find nothing is a"):
        assert part in prompt or (part == "Look for" and "Look at these parts" in prompt), part
    assert not {"{", "}", "JSON", "json", "end_line", "object"} & set(prompt.replace(",", " ").split())


def test_the_files_for_a_beginner_declare_the_same_agents(tmp_path: Path) -> None:
    for name, text in starter().items():
        write(tmp_path, text, name)
    found = read_declaration(tmp_path / "verify.yaml")
    assert found.agents == shipped().agents
    assert (found.model, found.limits) == ("anthropic/claude-sonnet-5-5", shipped().limits)


def test_what_is_commented_out_for_a_beginner_is_valid_too(tmp_path: Path) -> None:
    for name, text in starter().items():
        lines = [line.replace("# ", "", 1) if _is_example(line) else line for line in text.splitlines()]
        write(tmp_path, "\n".join(lines) if name == "verify.yaml" else text, name)
    found = read_declaration(tmp_path / "verify.yaml")
    assert [agent.parser for agent in found.agents if agent.command] == ["ruff"]
    assert found.thresholds == ("critical + high == 0",)
    assert found.limits == shipped().limits


def _is_example(line: str) -> bool:
    return line.startswith(("  # - ", "  #   ", "# thresholds:", "# limits:"))
