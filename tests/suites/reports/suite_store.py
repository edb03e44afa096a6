"""Suite runs put into a store by hand, through the store's own interface, for tests of what is made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from muster.domain.budget import Level
from muster.domain.call import Message, Reply, Request, Role, Stop, Usage, identify
from muster.domain.canonical import Json, digest
from muster.domain.case import Status
from muster.domain.entry import AttemptId, EntryKind, Failed, Opening, Outcome, Replied, Settlement
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.rules import CURRENT_RULES, FIRST_RULES
from muster.domain.run import NewRun, Run, RunState
from muster.store.base import Claim, Record, RunRelease, Store
from muster.suites.journal import (
    PAGE,
    SNAPSHOT,
    Prompt,
    SuiteInfo,
    SuiteSnapshot,
    case_key,
    cases_key,
    environment_key,
    pack,
    results_key,
)
from muster.suites.spec import read_spec
from muster.suites.values.case import Case
from muster.suites.values.rules import NAME as SCORING
from muster.suites.values.verdict import CaseResult
from muster.testing.stores import DRIVER, NOW

ENVIRONMENT: Mapping[str, Any] = {"python": "3.11.0", "system": "Linux", "packages": {"muster-ai": "0.1.0"}}


@dataclass(frozen=True, kw_only=True)
class Said:
    """One call of a run: what was asked under which key, and what came back."""

    key: str
    request: Request
    reply: Reply | None = None
    error: Mapping[str, Json] | None = None
    agent: str = "sim/echo"


@dataclass(frozen=True, kw_only=True)
class Story:
    """Everything that is to stand in the store of one run."""

    cases: Sequence[Case]
    results: Sequence[CaseResult]
    calls: Sequence[Said] = ()
    spec: Mapping[str, Json] | None = None
    suites: Sequence[SuiteInfo] | None = None
    prompts: Sequence[Prompt] = ()
    steps: Mapping[str, Json] | None = None  # anything else in the journal
    environment: Mapping[str, Json] | None = None
    run: str = "run1"
    name: str | None = None
    state: RunState = RunState.COMPLETED
    at: float = NOW


def a_case(name: str = "s/one", question: str = "hello", **rest: Any) -> Case:
    """Make a case that asks one question."""
    given: dict[str, Any] = {
        "suite": "s",
        "file": "s.yaml",
        "line": 3,
        "messages": (Message(role=Role.USER, text=question),),
    }
    return Case(id=name, **(given | rest))


def a_reply(text: str = "hello", **rest: Any) -> Reply:
    """Make a good reply."""
    given: dict[str, Any] = {
        "stop": Stop.END,
        "usage": Usage(input=3, output=2),
        "cost": Microdollars(40),
        "model": "echo-1",
    }
    return Reply(text=text, **(given | rest))


def a_result(
    case: str = "s/one", status: Status = Status.PASSED, score: float | None = None, **rest: Any
) -> CaseResult:
    """Make a result; the score is 1 for one that passed and 0 for one that failed, if nothing else is said."""
    usual = {Status.PASSED: 1.0, Status.FAILED: 0.0}.get(status)
    given: dict[str, Any] = {
        "subject": "sim/echo",
        "epoch": 1,
        "threshold": 0.7,
        "why": "" if status is Status.PASSED else "no good",
    }
    return CaseResult(case=case, status=status, score=usual if score is None else score, **(given | rest))


def an_answer(case: Case, text: str, *, subject: str = "sim/echo", epoch: int = 1, system: str = "") -> Said:
    """Make the one call that a case of one turn takes."""
    request = Request(messages=case.messages, system=system)
    return Said(key=f"{case_key(case.id, subject, epoch)}/1", request=request, reply=a_reply(text), agent=subject)


async def fill(store: Store, story: Story) -> Run:
    """Put a run into the store, page by page, as the workload does."""
    spec = read_spec(story.spec or {"path": ["s.yaml"], "agents": ["sim/echo"]})
    new = NewRun(
        id=RunId(story.run),
        workload="suite",
        spec=spec.stored(),
        created_at=story.at,
        name=story.name,
        seed=7,
        rules=CURRENT_RULES if SCORING in (story.environment or ENVIRONMENT) else FIRST_RULES,
    )
    run = await store.runs.create(new)
    claim = await store.leases.claim(run.id, DRIVER, run.lease.epoch, story.at, story.at + 15)
    keeper = _Keeper(store, run.id, claim, story.at)
    pages = [story.cases[start : start + PAGE] for start in range(0, len(story.cases), PAGE)]
    for number, page in enumerate(pages):
        await keeper.step(cases_key(number), pack(page))
    await keeper.step(SNAPSHOT, msgspec.to_builtins(_snapshot(story, len(pages))))
    await keeper.step(environment_key(spec.tag), dict(story.environment or ENVIRONMENT))
    for key, value in (story.steps or {}).items():
        await keeper.step(key, value)
    for said in story.calls:
        await keeper.call(said)
    for number, start in enumerate(range(0, len(story.results), PAGE)):
        await keeper.step(results_key(spec.tag, number), pack(story.results[start : start + PAGE]))
    return await store.leases.release(
        run.id, claim.epoch, RunRelease(state=story.state, reason=str(story.state), at=story.at + 60)
    )


def _snapshot(story: Story, pages: int) -> SuiteSnapshot:
    suites = story.suites
    if suites is None:
        names = dict.fromkeys((case.suite, case.file) for case in story.cases)
        suites = [
            SuiteInfo(
                name=name, file=file, digest=digest([name, file]), cases=sum(case.file == file for case in story.cases)
            )
            for name, file in names
        ]
    return SuiteSnapshot(suites=tuple(suites), prompts=tuple(story.prompts), cases=len(story.cases), pages=pages)


class _Keeper:
    """Writes into the journal of one run."""

    def __init__(self, store: Store, run: RunId, claim: Claim, at: float) -> None:
        self._store, self._run, self._epoch, self._at = store, run, claim.epoch, at

    async def step(self, key: str, value: Json) -> None:
        await self._store.journal.record(
            Record(run=self._run, epoch=self._epoch, key=key, kind=EntryKind.STEP, digest="", value=value, at=self._at)
        )

    async def call(self, said: Said) -> None:
        identity = identify(said.agent, said.request)
        opening = Opening(
            attempt=AttemptId(run=self._run, key=said.key, n=1, epoch=self._epoch),
            digest=identity.digest,
            agent=said.agent,
            request=identity.text,
            most=Microdollars(100),
            levels=(Level(id=f"run:{self._run}", cap=None),),
            at=self._at,
            first=True,
        )
        await self._store.journal.open(opening)
        outcome: Outcome = Failed(error=said.error or {"code": "bad_exit"}, uncertain=False, gives_up=True)
        if said.reply is not None:
            outcome = Replied(reply=said.reply)
        await self._store.journal.settle(
            Settlement(
                attempt=opening.attempt, outcome=outcome, reserved=opening.most, levels=opening.levels, at=self._at + 1
            )
        )
