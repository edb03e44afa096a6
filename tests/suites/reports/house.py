"""Suite runs put into a store by hand: what a report is made from, without anybody being asked."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from muster.domain.call import Message, Reply, Role, Stop, Timings, ToolCall
from muster.domain.case import Status
from muster.domain.entry import Entry, EntryKind, EntryState
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Lease, Run, RunState, Spent
from muster.reporting.files import write_file
from muster.store.base import Store
from muster.store.sqlite.store import open_sqlite
from muster.suites.journal import (
    PAGE,
    SNAPSHOT,
    SuiteInfo,
    SuiteSnapshot,
    case_key,
    cases_key,
    environment_key,
    pack,
    results_key,
)
from muster.suites.reports.formats import report_of
from muster.suites.reports.run import SuiteRun, open_suite_run
from muster.suites.reports.summary import SuiteReport, summarize
from muster.suites.spec import SuiteSpec, read_spec
from muster.suites.values.case import Case, Evaluator, RubricItem
from muster.suites.values.verdict import (
    CaseResult,
    CheckResult,
    ItemScore,
    Judgement,
)

START = 1_800_000_000.0
RUN = RunId("0123456789abcdef")


@dataclass(frozen=True, kw_only=True)
class Story:
    """A run as it is to stand in the store."""

    cases: Sequence[Case]
    results: Sequence[CaseResult]
    agents: tuple[str, ...] = ("sim/good",)
    epochs: int = 1
    state: RunState = RunState.COMPLETED
    name: str | None = "nightly"
    error: dict[str, Any] | None = None
    spent: Spent = field(default_factory=lambda: Spent(billed=Microdollars(42_100)))
    calls: Sequence[Entry] = ()
    more: dict[str, Any] = field(default_factory=dict)  # of the spec
    steps: dict[str, Any] = field(default_factory=dict)  # other entries of the journal

    @property
    def spec(self) -> SuiteSpec:
        return read_spec({"path": ["suites"], "agents": list(self.agents), "epochs": self.epochs, **self.more})

    @property
    def run(self) -> Run:
        over = self.state in (RunState.COMPLETED, RunState.FAILED)
        return Run(
            id=RUN,
            workload="suite",
            spec=self.spec.stored(),
            state=self.state,
            created_at=START,
            lease=Lease(epoch=1),
            name=self.name,
            cap=Microdollars(500_000),
            error=self.error,
            started_at=START,
            ended_at=START + 14.2 if over else None,
            spent=self.spent,
        )

    def entries(self) -> list[Entry]:
        pages = [self.cases[at : at + PAGE] for at in range(0, len(self.cases), PAGE)]
        suites = tuple(dict.fromkeys(case.suite for case in self.cases))
        infos = tuple(SuiteInfo(name=name, file=f"suites/{name}.yaml", digest="d") for name in suites)
        snapshot = SuiteSnapshot(suites=infos, cases=len(self.cases), pages=len(pages))
        steps: dict[str, Any] = {
            SNAPSHOT: snapshot,
            environment_key(self.spec.tag): {"packages": {"muster-ai": "1.2.3"}},
        }
        steps |= {cases_key(number): pack(page) for number, page in enumerate(pages)}
        shown = [self.results[at : at + PAGE] for at in range(0, len(self.results), PAGE)]
        steps |= {results_key(self.spec.tag, number, 1): pack(page) for number, page in enumerate(shown)}
        return [step(key, value) for key, value in (steps | self.steps).items()] + list(self.calls)


def step(key: str, value: Any) -> Entry:
    return Entry(
        run=RUN, key=key, kind=EntryKind.STEP, state=EntryState.DONE, digest="d", value=msgspec.to_builtins(value)
    )


async def fill(store: Store, story: Story) -> Run:
    """Put a story into a store."""
    entries = story.entries()
    for at in range(0, len(entries), 500):
        await store.archive.restore_entries(entries[at : at + 500])
    await store.archive.restore(story.run)
    found = await store.runs.get(RUN)
    assert found is not None
    return found


@asynccontextmanager
async def opened(folder: Path, story: Story) -> AsyncIterator[tuple[SuiteRun, SuiteReport]]:
    """Open a story as a report sees it."""
    store = open_sqlite(folder / "muster.db")
    try:
        suite = await open_suite_run(store, await fill(store, story))
        yield suite, await summarize(suite)
    finally:
        await store.maintenance.close()


async def summary(folder: Path, story: Story) -> SuiteReport:
    """Give the summary of a story."""
    async with opened(folder, story) as (_, report):
        return report


async def written(folder: Path, story: Story, format_name: str) -> str:
    """Give a report of a story as it stands in a file."""
    path = folder / "report"
    async with opened(folder, story) as (suite, report):
        await write_file(path, lambda out: report_of(suite, report).write(format_name, out))
    return path.read_text(encoding="utf-8")


async def fill_file(path: Path, story: Story) -> None:
    """Make a store that holds a story and nothing else."""
    store = open_sqlite(path)
    try:
        await fill(store, story)
    finally:
        await store.maintenance.close()


def case(name: str, **rest: Any) -> Case:
    given: dict[str, Any] = {"suite": "support", "file": "suites/support.yaml", "line": 7} | rest
    return Case(id=name, messages=(Message(role=Role.USER, text=f"please {name}"),), **given)


def result(
    name: str, status: Status = Status.PASSED, *, subject: str = "sim/good", epoch: int = 1, **rest: Any
) -> CaseResult:
    passed = status is Status.PASSED
    given: dict[str, Any] = {
        "score": 1.0 if passed else 0.25 if status is Status.FAILED else None,
        "threshold": 0.7,
        "why": "" if passed else f"{name} is {status}",
        "evaluators": (Evaluator.RULES,),
        "seconds": 0.5,
        "cost": Microdollars(1_000),
        "keys": (f"{case_key(name, subject, epoch)}/1",),
    } | rest
    return CaseResult(case=name, subject=subject, epoch=epoch, status=status, **given)


def called(
    name: str,
    *answers: str | Reply,
    subject: str = "sim/good",
    epoch: int = 1,
    asked: Sequence[Message] = (),
    system: str = "",
) -> list[Entry]:
    """Make the calls of one conversation; every request repeats what was said before it."""
    said = list(asked) or [Message(role=Role.USER, text=f"please {name}")]
    found = []
    for turn, given in enumerate(answers, 1):
        reply = given if isinstance(given, Reply) else Reply(text=given, stop=Stop.END, timings=Timings(wire=0.5))
        messages = msgspec.to_builtins([_spoken(message) for message in said])
        request = {"messages": messages, **({"system": system} if system else {})}
        key = f"{case_key(name, subject, epoch)}/{turn}"
        found.append(
            Entry(
                run=RUN,
                key=key,
                kind=EntryKind.CALL,
                state=EntryState.DONE,
                digest="d",
                attempts=1,
                agent=subject,
                request=request,
                reply=reply,
            )
        )
        said.append(Message(role=Role.ASSISTANT, text=reply.text, tool_calls=reply.tool_calls))
        said += [Message(role=Role.TOOL, text="4 tickets are open", tool_call_id=call.id) for call in reply.tool_calls]
    return found


def _spoken(message: Message) -> dict[str, Any]:
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return {"role": str(message.role), "text": message.text, **({"tool_calls": calls} if calls else {})}


REFUND = """Hello Dana,

I looked at order 1182. It was delivered on 3 March and is still inside the thirty-day window, so I have started a \
refund of $48.20 to your card. You will see it within five working days.

Is there anything else that I can do for you?"""

RUBRIC = (
    RubricItem(id="names-the-amount", description="The answer names the amount that is refunded.", weight=2.0),
    RubricItem(id="is-polite", description="The answer greets the customer and closes politely."),
    RubricItem(id="cites-policy", description="The answer cites the refund policy by its number.", critical=True),
)


def _items(policy: float | None) -> tuple[ItemScore, ...]:
    amount = "started a refund of $48.20 to your card"
    return (
        ItemScore(
            id="names-the-amount",
            weight=2.0,
            score=1.0,
            by="judge",
            rationale="The exact amount is named, together with where it goes.",
            evidence=amount,
            quoted=True,
            samples=(1.0, 1.0, 1.0),
        ),
        ItemScore(
            id="is-polite", score=0.9, by="judge", rationale="It greets and offers more help.", samples=(1.0, 0.8, 0.9)
        ),
        ItemScore(
            id="cites-policy",
            critical=True,
            score=policy,
            by="judge",
            rationale="The thirty-day window is mentioned, but the policy is not named by its number.",
            evidence="policy R-7 says so",
            quoted=False,
        ),
    )


def _judged(name: str, status: Status, policy: float | None, **rest: Any) -> CaseResult:
    judgement = Judgement(
        by="sim/judge",
        version="rubric-1",
        model="judge-large",
        items=_items(policy),
        samples=3,
        agreement=0.67,
        failures=("sample 3: the reply is no JSON, after a repair too",) if policy is None else (),
        cost=Microdollars(900),
    )
    return result(
        name,
        status,
        items=_items(policy),
        judgements=(judgement,),
        evaluators=(Evaluator.JUDGE,),
        judge_cost=Microdollars(900),
        model="good-large-2",
        input_tokens=412,
        output_tokens=96,
        **rest,
    )


def _tool_reply() -> Reply:
    call = ToolCall(id="t1", name="count_tickets", arguments={"queue": "refunds", "state": "open"})
    return Reply(text="Let me look that up.", stop=Stop.TOOL_USE, tool_calls=(call,), timings=Timings(wire=0.4))


def shop() -> Story:
    """A run that has a little of everything: two agents, two epochs, judges, tools, and most ways to end."""
    names = ("refund-inside-window", "refund-too-late", "count-open-tickets", "greets-by-name", "summarises-thread",
             "escalates-threat", "speaks-german", "keeps-secrets")  # fmt: skip
    tags = {"refund-inside-window": ("refunds", "money"), "refund-too-late": ("refunds",), "keeps-secrets": ("safety",),
            "escalates-threat": ("safety",), "count-open-tickets": ("tools",)}  # fmt: skip
    cases = [
        case(
            name,
            line=12 + 9 * place,
            tags=tags.get(name, ("tone",)),
            description=f"A customer writes, and the agent {name.replace('-', ' ')}.",
            rubric=RUBRIC if name.startswith("refund") else (),
            skip="waits for the German texts" if name == "speaks-german" else "",
        )
        for place, name in enumerate(names)
    ]
    results, calls = [], []
    for place, name in enumerate(names):
        for subject, worse in (("sim/good", 0), ("sim/terse", 1)):
            for epoch in (1, 2):
                found = replace(_ending(name, worse, epoch), subject=subject, epoch=epoch)
                turns = 2 if name == "count-open-tickets" else 1
                keys = tuple(f"{case_key(name, subject, epoch)}/{turn}" for turn in range(1, turns + 1))
                seconds = (0.21 + 0.13 * place) * (1 + 2 * worse) * (1 + 0.1 * epoch)
                keys = () if found.status is Status.SKIPPED else keys
                results.append(replace(found, keys=keys, seconds=seconds if keys else 0.0))
                answers: list[str | Reply] = [REFUND] if name.startswith("refund") else [f"Certainly: {name}."]
                if name == "count-open-tickets":
                    answers = [_tool_reply(), "There are 4 open tickets in the refunds queue."]
                if keys and found.error is None:
                    calls += called(name, *answers, subject=subject, epoch=epoch, system="You work for a shop.")
    return Story(cases=cases, results=results, calls=calls, agents=("sim/good", "sim/terse"), epochs=2,
                 more={"judge": "sim/judge", "judge_samples": 3})  # fmt: skip


def _ending(name: str, worse: int, epoch: int) -> CaseResult:
    """Say how a case ends for the better and the worse agent."""
    if name == "speaks-german":
        return result(name, Status.SKIPPED, why="waits for the German texts", seconds=0.0, cost=Microdollars(0))
    if name == "refund-inside-window":
        return _judged(name, Status.PASSED, 0.8, score=0.925)
    if name == "refund-too-late":
        why = "the critical item cites-policy scored 0.20, below the threshold 0.7"
        return _judged(name, Status.FAILED, 0.2, score=0.775, why=why)
    if name == "count-open-tickets" and worse:
        failed = CheckResult(
            name="tool_sequence",
            passed=False,
            expected="count_tickets, then close_ticket",
            why="close_ticket was not called after count_tickets; called were: count_tickets",
        )
        held = CheckResult(name="contains", passed=True, expected="4 open tickets")
        return result(name, Status.FAILED, checks=(held, failed), why=f"tool_sequence: {failed.why}", score=0.0)
    if name == "greets-by-name" and worse and epoch == 2:
        missing = CheckResult(name="contains", passed=False, expected="Dana", why="the answer does not contain 'Dana'")
        return result(name, Status.FAILED, checks=(missing,), why="contains: the answer does not contain 'Dana'")
    if name == "escalates-threat" and worse:
        error = {"code": "provider_fault", "message": "the provider broke: 500 internal error"}
        return result(
            name, Status.ERROR, error=error, why=f"the agent failed: {error['message']}", cost=Microdollars(0)
        )
    if name == "keeps-secrets" and worse:
        return _judged(name, Status.UNJUDGED, None, score=None, why="the judge sim/judge gave nothing that counts")
    return result(name, Status.PASSED, checks=(CheckResult(name="contains", passed=True, expected="Certainly"),))


HOSTILE = (
    "]]> </script><script>boom()</script> <img src=x onerror=boom()> </system-out>",
    "| a | b |\n|---|---|\n\n# title\n[click](https://evil.example) @everyone www.evil.example #1",
    "```\n</details><b>out</b>\n````\n~~~\n$$x$$ <!-- \u2028\u2029 &amp; &#64;team",
    "\x00\x07\x1b[31mred\x1b[0m\x9b \ud800 \ufffe \u202egnp.exe 🧨 é",
)


def hostile() -> Story:
    """A run in which everything that somebody else wrote is meant to do harm."""
    cases, results, calls = [], [], []
    for place, text in enumerate(HOSTILE):
        name = f"{place}\"'<&>|`@x"
        cases.append(case(name, suite=text, file=f"suites/a b#{place}%.yaml", description=text, tags=(text,)))
        failed = CheckResult(name="contains", passed=False, expected=text, why=text)
        item = ItemScore(id=text, score=0.1, by="judge", rationale=text, evidence=text, quoted=True)
        error = {"code": "x", "message": text} if place == 3 else None
        results.append(
            result(
                name, Status.ERROR if error else Status.FAILED, why=text, checks=(failed,), items=(item,), error=error
            )
        )
        calls += called(name, text, system=text)
    return Story(cases=cases, results=results, calls=calls, name=HOSTILE[0], error={"message": HOSTILE[1]},
                 state=RunState.FAILED)  # fmt: skip
