"""CLI agents pass the checks that every agent passes."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from muster.domain.call import ask
from muster.testing.agents import CHECKS, Candidate

from .stage import PATIENT, Stage, section_of, until

REQUEST = ask("Say these words, please:  one\ntwo  🎉", system="Be brief.")

# Answers with its input; with a file `hang` beside it, it takes the file away and hangs.
TEXT = "if [ -e hang ]; then rm hang; sleep 600; fi; cat"


def lines_candidate(stage: Stage) -> Candidate:
    script, audit = stage.folder / "script.json", stage.folder / "audit.jsonl"
    ok, hangs = json.dumps([]), json.dumps([{"steps": [{"hang": True}]}])
    script.write_text(ok)

    def hang() -> None:
        script.write_text(hangs)

    async def reached() -> None:
        before = starts(audit)
        await until(lambda: starts(audit) > before)
        script.write_text(ok)

    return Candidate(
        agent=stage.rehearsal("--script", str(script), "--audit", str(audit)),
        request=REQUEST,
        hang=hang,
        reached=reached,
        timeouts=PATIENT,
    )


def text_candidate(stage: Stage) -> Candidate:
    flag = stage.folder / "hang"

    async def reached() -> None:
        await until(lambda: not flag.exists())

    return Candidate(
        agent=stage.agent(section_of(command=("bash", "-c", TEXT))),
        request=REQUEST,
        hang=flag.touch,
        reached=reached,
        timeouts=PATIENT,
    )


def starts(audit: Path) -> int:
    return audit.read_text().count('"start"') if audit.exists() else 0


@pytest.mark.parametrize("make", [lines_candidate, text_candidate])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_a_cli_agent_keeps_the_contract(
    stage: Stage, check: Callable[[Candidate], Awaitable[None]], make: Callable[[Stage], Candidate]
) -> None:
    await check(make(stage))
