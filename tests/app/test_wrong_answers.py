"""An answer that does not fit its schema: one error tells of it, whoever found that out."""

import json
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

import muster
from muster.testing import FakeAgent, MusterTest

WRONG = '{"label": "lost", "urgent": "very", "more": 1}'


@dataclass(frozen=True)
class Letter:
    label: Literal["delivery", "billing"]
    urgent: bool


@muster.workload("letters of a test of wrong answers")
async def sort(ctx: muster.Context, agent: str) -> str:
    return (await ctx.call(agent, "a letter", key="letter", schema=Letter)).data.label


def agents(folder: Path) -> dict[str, Any]:
    """Return agents that all give the same answer: one that leaves it to us to look at it, and two that look at it."""
    (folder / "script.yaml").write_text(f"otherwise: '{WRONG}'", encoding="utf-8")
    program = [sys.executable, "-c", f"print({WRONG!r})"]
    return {
        "model": {"kind": "scripted", "script": str(folder / "script.yaml")},
        "function": FakeAgent(WRONG),
        "program": {"kind": "program", "command": program, "mode": "plain"},
    }


@pytest.mark.parametrize("agent", ["model", "function", "program"])
async def test_it_is_the_same_error_whoever_looks_at_the_answer(muster_test: MusterTest, agent: str) -> None:
    muster_test.agents.update(agents(muster_test.folder))
    async with muster_test.open() as m:
        with pytest.raises(muster.BadOutput) as asked:
            await m.ask(agent, "a letter", schema=Letter)
        run = await m.start(sort, agent)
        with pytest.raises(muster.RunFailed) as failed:
            await run.result()
    misfit = failed.value.__cause__
    for error, key in ((asked.value, "ask"), (misfit, "letter")):
        assert isinstance(error, muster.BadOutput)
        assert error.message.startswith(f"call {key!r} to {agent}: its answer does not fit the schema: ")
        assert "'lost' is not one of" in error.message
        assert "'very' is not of type 'boolean'" in error.message
        assert json.loads(error.reply.text) == json.loads(WRONG)
        assert error.suggestions[0].endswith(f"--call {key}")
        assert error.suggestions[0] in "".join(traceback.format_exception(error))
