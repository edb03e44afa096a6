"""What docs/CHAINS.md tells is true: its example runs, its conditions are read, and no key is left out."""

import re
from pathlib import Path

import pytest

from muster.domain.isolation import Isolation
from muster.domain.run import RunState
from muster.pool.chains.chain import MAX_ITEMS, MAX_ROWS
from muster.pool.chains.conditions import parse_condition
from muster.pool.chains.forms import GROUP, INPUT, STEP, TOP
from tests.pool.chains.home import chain_home

PAGE = (Path(__file__).parent.parent / "docs" / "CHAINS.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("keys", [TOP, STEP, GROUP, INPUT])
def test_every_key_is_told(keys: tuple[str, ...]) -> None:
    section = PAGE.partition("\n## The file\n")[2].partition("\n## ")[0]
    assert [key for key in keys if f"`{key}`" not in section] == []


async def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "chain.yaml").write_text(example, encoding="utf-8")
    async with chain_home(tmp_path) as home:
        chain = home.muster.chains.load(tmp_path / "chain.yaml")
        spec = home.muster.chains.spec(chain, {"topic": "bees"}, folder=tmp_path)
        run = await (await home.muster.chains.start(spec)).wait()
        assert run.state is RunState.COMPLETED, run.error
        notes = "Write about bees (0)\n\nWrite about honey (1)"
        assert (tmp_path / "NOTES.md").read_text() == notes
        assert run.result["output"] == f"A title for bees: {notes}"


def test_the_conditions_are_conditions() -> None:
    text = PAGE.partition("\n## Conditions\n")[2].partition("\n## ")[0]
    (shown,) = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    assert [parse_condition(line) for line in shown.splitlines()]


def test_the_numbers_and_choices_are_told_as_they_are() -> None:
    assert f"at most {MAX_ITEMS:,} items" in PAGE
    assert f"at most {MAX_ROWS:,}" in PAGE
    assert all(f"`{one}`" in PAGE or f"isolation: {one}" in PAGE for one in Isolation)
