"""Commands of the documents that ask models of today: with models that think before they answer, no answer is cut."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import muster

from .cli.shell import Shell
from .pictures import png
from .rehearsal import ForkedRehearsal

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
KINDS = ("ask", "run", "council", "battle", "scale", "generate")
ASKING = re.compile(rf"^muster (?:{'|'.join(KINDS)})(?: .*)? (?:anthropic|openai)/\S+.*", re.MULTILINE)
LEFT = {"--detach": "continued by another process", "council:council.yaml": "the page shows its file"}


def commands() -> list[str]:
    """Return the commands that name a model, each once, without their comments."""
    found = (line for page in PAGES for line in ASKING.findall(page.read_text(encoding="utf-8")))
    whole = (re.sub(r"\s+#.*", "", line) for line in found if "…" not in line and "$" not in line)
    return sorted({line for line in whole if not any(words in line for words in LEFT)})


@pytest.fixture(scope="module")
def thinking() -> Iterator[ForkedRehearsal]:
    with ForkedRehearsal(thinking=True, batch_ms=10) as process:
        yield process


@pytest.fixture
def shell(tmp_path: Path, thinking: ForkedRehearsal) -> Shell:
    found = Shell(tmp_path)
    found.use(thinking)
    found.muster("init", "my-agent")
    tmp_path.joinpath("chart.png").write_bytes(png())
    tmp_path.joinpath("muster.toml").write_text('[agents.critic]\nkind = "scripted"\n')
    return found


def test_there_are_commands_that_ask_models() -> None:
    assert len(commands()) >= 8
    assert {line.split()[1] for line in commands()} >= {"ask", "run", "council"}


@pytest.mark.parametrize("line", commands())
async def test_no_answer_of_a_command_is_cut(shell: Shell, line: str) -> None:
    words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)][1:]
    done = shell.muster(*words)
    assert done.code in (0, 1), done.err  # what a rehearsed answer is worth is another question
    async with muster.open(project=shell.folder) as m:
        runs = await m.runs.list()
        calls = [call for run in runs for call in await m.runs.calls(run.id, limit=1_000)]
    replies = [call.reply for call in calls if call.reply is not None]
    assert len(replies) == len(calls) > 0, done.err
    assert {reply.stop for reply in replies} == {muster.Stop.END}
    assert sum(reply.usage.thinking for reply in replies) > 0
