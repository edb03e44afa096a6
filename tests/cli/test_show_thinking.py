"""What a model says that it thought is shown by `ask` on demand only, and never on standard output."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import Shell

MODEL = "thinker"
SECTION = """\
[agents.thinker]
kind = "anthropic"
model = "claude-opus-5"
thinking = "adaptive"
thinking_display = "summarized"
"""


@pytest.fixture(scope="module")
def thinking() -> Iterator[ForkedRehearsal]:
    with ForkedRehearsal(thinking=True) as process:
        yield process


@pytest.fixture
def shell(tmp_path: Path, thinking: ForkedRehearsal) -> Shell:
    tmp_path.joinpath("muster.toml").write_text(SECTION)
    found = Shell(tmp_path)
    found.use(thinking)
    return found


def test_it_is_shown_beside_the_answer_where_it_is_asked_for(shell: Shell) -> None:
    plain = shell.muster("ask", MODEL, "Is it so?")
    shown = shell.muster("ask", MODEL, "Is it so?", "--show-thinking")
    assert plain.code == shown.code == 0
    assert shown.out == plain.out
    assert "thought: " not in plain.err
    told = [line.removeprefix("thought: ") for line in shown.err.splitlines() if line.startswith("thought: ")]
    assert told
    assert "nothing that its provider shows" not in told[0]
    assert told[0] not in shown.out


def test_json_has_it_where_it_is_asked_for(shell: Shell) -> None:
    assert "thinking" not in json.loads(shell.muster("ask", MODEL, "Is it so?", "--json").out)["data"]
    assert json.loads(shell.muster("ask", MODEL, "Is it so?", "--json", "--show-thinking").out)["data"]["thinking"]


def test_a_model_that_shows_nothing_is_said_to(shell: Shell) -> None:
    shown = shell.muster("ask", "openai/gpt-5-mini", "Is it so?", "--show-thinking")
    assert "thought: nothing that its provider shows" in shown.err
