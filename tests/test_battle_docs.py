"""What docs/BATTLES.md tells is true: its commands run, its tables are those of the code; and the example runs."""

import re
import shutil
from pathlib import Path

import pytest

from muster.battles.order import DEFAULT_SECONDS, DEFAULT_TOKENS, MAX_REPLIES
from muster.battles.validators import ValidatorKind
from muster.battles.values import PLATEAU, BattleEnding, DecisionSource, GoalVerdict
from tests.cli.shell import Shell

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "BATTLES.md").read_text(encoding="utf-8")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(folder=tmp_path)


STATES = {"goal": "completed", "limit": "completed", "error": "failed", "budget": "failed", "manual": "canceled"}


def commands(text: str, start: str) -> list[list[str]]:
    """Return the arguments of the commands that stand in a text, after a mark at the beginning of their lines."""
    lines = re.findall(rf"^{re.escape(start)}muster (.*)$", text, re.MULTILINE)
    return [[part.strip('"') for part in re.findall(r'"[^"]*"|\S+', line)] for line in lines]


def test_the_commands_of_the_page_run(shell: Shell) -> None:
    (example,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for name, text in re.findall(r"cat > (\S+) <<'END'\n(.*?)END\n", example, re.DOTALL):
        (shell.folder / name).write_text(text, encoding="utf-8")
    for arguments in commands(example, ""):
        done = shell.muster(*arguments)
        assert done.code == 0, (arguments, done.err)
    assert "Ask for number and time at once." in (shell.folder / "scale.html").read_text(encoding="utf-8")


def test_the_file_of_goals_is_read(shell: Shell) -> None:
    (goals,) = re.findall(r"```yaml\n# goals.yaml\n(.*?)```", PAGE, re.DOTALL)
    (shell.folder / "goals.yaml").write_text(goals, encoding="utf-8")
    sides = ("scale", "-a", "sim/echo", "-c", "sim/echo", "--validator", "contains=late", "--goals", "goals.yaml")
    done = shell.muster(*sides, "--message-limit", "1", "--json").data()
    assert [(one["goal"], one["endedReason"]) for one in done["battles"]] == [
        ("A table for two is booked", "limit"),
        ("The table is moved to nine", "goal"),
    ]


def test_every_ending_is_told_with_its_state() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rows == {**STATES, "timeout": "timeout"}
    assert set(rows) == {str(ending) for ending in BattleEnding}


@pytest.mark.parametrize("words", [ValidatorKind, GoalVerdict])
def test_every_word_is_told(words: type[ValidatorKind | GoalVerdict]) -> None:
    assert [str(word) for word in words if f"`{word}`" not in PAGE] == []


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"has at most {DEFAULT_TOKENS} tokens" in PAGE
    assert f"{DEFAULT_SECONDS:g} seconds by default" in PAGE
    assert f"times, {MAX_REPLIES} at most" in PAGE
    assert f"`endedDetail` is `{PLATEAU}`" in PAGE
    assert len(DecisionSource) == len(re.findall(r"^\d\. \*\*", PAGE, re.MULTILINE))


def test_the_example_does_what_its_comments_say(shell: Shell) -> None:
    for file in (ROOT / "examples" / "battles").iterdir():
        shutil.copy(file, shell.folder / file.name)
    comment = (shell.folder / "muster.toml").read_text(encoding="utf-8")
    first, gate, tried, report = commands(comment, "#   ")
    assert "the goal is reached after 2 replies of desk" in shell.muster(*first).out
    done = shell.muster(*gate, "--json").data()
    assert (done["counts"]["goal"], done["counts"]["limit"]) == (1, 1)
    assert shell.muster(*tried, "--json").data()["comparison"]["result"] == "no difference is shown"
    assert shell.muster(*report).code == 0
