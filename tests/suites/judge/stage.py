"""What the tests of judges share: cases, replies, and a run in which a judge is asked."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.domain.call import Message, Reply, Request, Role, Stop, Usage
from muster.domain.canonical import Json
from muster.domain.money import Microdollars
from muster.domain.run import Run
from muster.engine.context import Context
from muster.suites.judge.rubric import judge
from muster.suites.values.case import Case, RubricItem
from muster.suites.values.verdict import Judgement, Observation
from tests.engine.house import Puppet, house

ANSWER = "Paris is the capital of France.\nIt lies on the   Seine."
SEEN = Observation(answers=(ANSWER,))
RUBRIC = (
    RubricItem(id="right", description="Names the capital", weight=0.7, critical=True),
    RubricItem(id="brief", description="Is brief", weight=0.3),
)


def case(**changes: Any) -> Case:
    """Make a case with a rubric of two items."""
    usual: dict[str, Any] = {
        "id": "geo/capital",
        "suite": "geo",
        "file": "cases.yaml",
        "line": 3,
        "messages": (Message(role=Role.USER, text="What is the capital of France?"),),
        "description": "Knows capitals",
        "rubric": RUBRIC,
    }
    return Case(**usual | changes)


def item(id_: str, score: Json = 1.0, evidence: str = "Paris", rationale: str = "because") -> dict[str, Json]:
    return {"id": id_, "score": score, "evidence": evidence, "rationale": rationale}


def verdict(*items: dict[str, Json]) -> str:
    return json.dumps({"items": items or (item("right"), item("brief", 0.5))})


def reply(text: str, *, stop: Stop = Stop.END, cost: int = 10, data: Json = None) -> Reply:
    return Reply(
        text=text, stop=stop, usage=Usage(input=1, output=1), cost=Microdollars(cost), model="judge-1", data=data
    )


def saying(*texts: str | Reply | Exception) -> Puppet:
    """Make a judge that says one thing after the other, and then the last again and again."""

    async def answer(request: Request, n: int) -> Reply:
        said = texts[min(n, len(texts)) - 1]
        if isinstance(said, Exception):
            raise said
        return reply(said) if isinstance(said, str) else said

    return Puppet(answer)


def computing(function: Callable[[Request], str]) -> Puppet:
    """Make a judge that computes what it says."""

    async def answer(request: Request, n: int) -> Reply:
        return reply(function(request))

    return Puppet(answer)


@dataclass
class Session:
    """A run in which one answer was judged."""

    run: Run
    keys: list[str]
    judgements: list[Judgement] = field(default_factory=list)

    @property
    def judgement(self) -> Judgement:
        assert len(self.judgements) == 1, self.run.error
        return self.judgements[0]


async def session(
    folder: Path, by: Puppet, *, asked: Case | None = None, seen: Observation = SEEN, samples: int = 1, **rest: Any
) -> Session:
    """Have one answer judged in a run of its own."""
    found: list[Judgement] = []

    async def work(ctx: Context, spec: Any) -> Json:
        found.append(await judge(ctx, asked or case(), seen, judge="critic", samples=samples, key="case/x/s/1"))
        return None

    async with house(folder, critic=by) as h:
        run = await h.drive(work, **rest)
        keys = [entry.key async for entry in h.store.archive.entries(run.id)]
    return Session(run, keys, found)


async def judged(folder: Path, by: Puppet, **rest: Any) -> Judgement:
    """Have one answer judged and give the judgement."""
    return (await session(folder, by, **rest)).judgement
