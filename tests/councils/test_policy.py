"""council.yaml: read with its line numbers, refused with everything that is wrong, and the one that init writes."""

from pathlib import Path

import pytest

from muster.app.project.editor_schemas import council_schema
from muster.councils.order import ScoreScale
from muster.councils.policy import inspect_policy, read_policy, starter
from muster.councils.rules.values import CouncilMember
from muster.domain.errors import BadFile, NotFound
from muster.text.schemas.json_schema import flaw

WHOLE = """\
agents:
  - { agent: anthropic/claude-sonnet-5-5, role: skeptic, persona: "You doubt numbers." }
  - { agent: critic, budget_usd: 0.20, scale: "-1..1" }
rounds: 4
min_rounds: 2
effort: 0.5
quorum: 0.67
timeout_secs: 90
synthesis: openai/gpt-5
"""


def test_a_policy_names_members_and_limits(tmp_path: Path) -> None:
    path = tmp_path / "council.yaml"
    path.write_text(WHOLE, encoding="utf-8")
    found = read_policy(path)
    assert found.members == (
        CouncilMember(name="anthropic/claude-sonnet-5-5", role="skeptic", persona="You doubt numbers."),
        CouncilMember(name="critic", budget_usd=0.2, scale=ScoreScale.SIGNED),
    )
    assert (found.rounds, found.min_rounds, found.effort, found.timeout_secs) == (4, 2, 0.5, 90)
    assert found.synthesis == "openai/gpt-5"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("agents: [{agent: a}]\n", 1, "a council has from 2 to 50 members, not 1"),
        ("agents:\n  - {agent: a}\n  - {agent: a}\n", 2, "agent 'a' is a member more than once"),
        ("agents:\n  - {agent: a}\n  - {agent: b, roll: x}\n", 3, "unknown key; did you mean role?"),
        ("agents:\n  - {agent: a}\n  - {agent: b}\neffort: 2\n", 4, "must be at most 1"),
        (
            "agents:\n  - {agent: a}\n  - {agent: b}\nrounds: 1\nmin_rounds: 2\n",
            5,
            "min_rounds must be at most 1, not 2",
        ),
        ("rounds: 3\n", 1, "missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = tmp_path / "council.yaml"
    path.write_text(text, encoding="utf-8")
    (first, *_) = inspect_policy(path).flaws
    assert first.line == line
    assert words in first.message
    with pytest.raises(BadFile, match=r"council\.yaml"):
        read_policy(path)


def test_a_policy_in_toml_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "council.toml"
    path.write_text('rounds = 2\n[[agents]]\nagent = "a"\n[[agents]]\nagent = "b"\n', encoding="utf-8")
    assert [member.name for member in read_policy(path).members] == ["a", "b"]


def test_a_policy_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        read_policy(tmp_path / "council.yaml")
    assert caught.value.suggestions == ("create one with muster init NAME --kind council",)


def test_the_policy_to_begin_with_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "council.yaml"
    path.write_text(starter("panel")["council.yaml"], encoding="utf-8")
    assert len(read_policy(path).members) == 3


def test_the_schema_for_editors_takes_what_the_reader_takes() -> None:
    good = {"agents": [{"agent": "a", "role": "skeptic"}, {"agent": "b", "budget_usd": 0.2}], "rounds": 3}
    assert not flaw(good, council_schema())
    assert flaw(good | {"round": 3}, council_schema())


MODERATED = (
    "agents:\n  - {agent: m, role: Moderator, persona: Be brief., budget_usd: 0.1}\n  - {agent: a}\n  - {agent: b}\n"
)


def test_an_agent_with_the_role_moderator_is_no_member_and_writes_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "council.yaml"
    path.write_text(MODERATED, encoding="utf-8")
    found = read_policy(path)
    assert [member.name for member in found.members] == ["a", "b"]
    assert found.author == CouncilMember(name="m", role="Moderator", persona="Be brief.", budget_usd=0.1)
    assert found.agents == ("a", "b", "m")


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ("  - {agent: n, role: moderator}\n", 5, "'n' is a second moderator; a council has at most one"),
        ("synthesis: a\n", 5, "the answer is written by the moderator 'm', not by 'a'"),
        ("  - {agent: m}\n", 1, "agent 'm' is a member and the moderator, who only writes the answer"),
        ("  - {agent: b}\n", 4, "agent 'b' is a member more than once"),
    ],
)
def test_what_contradicts_a_moderator_is_told_with_its_line(tmp_path: Path, more: str, line: int, words: str) -> None:
    path = tmp_path / "council.yaml"
    path.write_text(MODERATED + more, encoding="utf-8")
    (first, *_) = inspect_policy(path).flaws
    assert (first.line, words in first.message) == (line, True), first


def test_a_moderator_gives_no_scores_and_leaves_two_members(tmp_path: Path) -> None:
    path = tmp_path / "council.yaml"
    path.write_text("agents:\n  - {agent: a}\n  - {agent: m, role: moderator, scale: '-1..1'}\n", encoding="utf-8")
    messages = [flaw.message for flaw in inspect_policy(path).flaws]
    assert any("from 2 to 50 members, not 1" in message for message in messages)
    assert any("a moderator gives no scores; leave out scale" in message for message in messages)
