"""Verifications put into a real store by hand: what reports are made from, without anybody being asked."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from muster.domain.batch import BatchEndpoint, Member, Plan
from muster.domain.budget import Level
from muster.domain.entry import AttemptId, AttemptState, EntryKind, Failed, Opening, Outcome, Settlement
from muster.domain.ids import BatchId, RunId
from muster.domain.money import Microdollars
from muster.domain.run import NewRun, Run, RunState
from muster.reporting.files import write_file
from muster.store import base
from muster.store.base import Record, ResultPage, Store
from muster.store.sqlite.store import open_sqlite
from muster.testing.stores import DRIVER, replied
from muster.text.thresholds import ThresholdResult
from muster.verify.declaration.verification import Kind, LeftOut, Verification, Verifier
from muster.verify.findings.finding import Counts, Finding, Merged, Rejected, Severity
from muster.verify.findings.journal import CLEARED, SNAPSHOT, AgentReport, Ending, WaveReport, files_key, report_key
from muster.verify.reports.formats import report_of
from muster.verify.reports.run import WavesRun, open_waves_run
from muster.verify.reports.summary import VerifyReport, summarize
from muster.verify.sources.source import FileInfo, Source, VerifySnapshot
from muster.verify.spec import stored

START = 1_800_000_000.0  # 2027-01-15 08:00:00 in UTC
ENDPOINT = BatchEndpoint(kind="openai", base_url="http://127.0.0.1:1", account="a", variable="K")
CODE = "import os\n\n\ndef run(name):\n    os.system('echo ' + name)\n    return 1\n"


@dataclass(frozen=True, kw_only=True)
class Story:
    """A verification as it is to stand in the store."""

    verifiers: Sequence[Verifier]
    waves: Sequence[WaveReport]
    files: Mapping[str, str] = field(default_factory=lambda: {"src/a.py": CODE})
    infos: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # more facts of a file
    spec: Mapping[str, Any] = field(default_factory=dict)
    left_out: Sequence[LeftOut] = ()
    cleared: Sequence[str] | None = None
    read: bool = True  # the files were read in
    state: RunState = RunState.COMPLETED
    error: Mapping[str, Any] | None = None
    name: str | None = "nightly"
    run: str = "0123456789abcdef"
    at: float = START
    seconds: float = 14.25
    paid: Sequence[int] = ()  # live calls, in microdollars
    batch: Sequence[tuple[int, int] | None] = ()  # calls in a batch: price and live price, None for one that expired


def model(name: str, wave: int = 1, **rest: Any) -> Verifier:
    return Verifier(name=name, wave=wave, model="sim/echo", prompt="Look.", thresholds=(), **rest)


def checker(name: str, wave: int = 1, **rest: Any) -> Verifier:
    return Verifier(name=name, wave=wave, kind=Kind.COMMAND, command=("ruff",), parser="ruff", thresholds=(), **rest)


def finding(text: str = "the name is run by a shell", line: int = 5, **rest: Any) -> Finding:
    given: dict[str, Any] = {"file": "src/a.py", "end_line": line, "severity": Severity.HIGH} | rest
    return Finding(line=line, finding=text, **given)


def rejected(text: str = "there is no such line", line: int = 99, **rest: Any) -> Rejected:
    return Rejected(finding=finding(text, line, **rest), why="line 99 is not in the file")


def counted(findings: Sequence[Finding], thrown: int = 0) -> Counts:
    of = {severity: sum(one.severity is severity for one in findings) for severity in Severity}
    return Counts(
        critical=of[Severity.CRITICAL],
        high=of[Severity.HIGH],
        medium=of[Severity.MEDIUM],
        low=of[Severity.LOW],
        rejected=thrown,
    )


def agent(
    name: str, wave: int = 1, ending: Ending = Ending.PASSED, found: Sequence[Finding] = (), **rest: Any
) -> AgentReport:
    chunks = 0 if ending is Ending.IDLE else 1
    given: dict[str, Any] = {
        "findings": tuple(found),
        "counts": counted(found, len(rest.get("rejected", ()))),
        "chunks": chunks,
        "answered": 0 if ending is Ending.BROKEN else chunks,
        "thresholds": (
            ThresholdResult(expression="high == 0", holds=ending is not Ending.FAILED, why=f"high is {len(found)}"),
        ),
        "why": "" if ending is Ending.PASSED else f"{name} is {ending}",
        "model": "echo-1",
        "seconds": 2.5,
        "cost": Microdollars(1_500),
    } | rest
    return AgentReport(agent=name, wave=wave, ending=ending, **given)


def wave(number: int, *agents: AgentReport, **rest: Any) -> WaveReport:
    found = [Merged(finding=one, by=(agent.agent,)) for agent in agents for one in agent.findings]
    given: dict[str, Any] = {
        "passed": all(one.ending in (Ending.PASSED, Ending.IDLE) for one in agents),
        "merged": tuple(found),
        "counts": counted([one.finding for one in found], sum(one.counts.rejected for one in agents)),
        "started_at": START + 10 * (number - 1),
        "ended_at": START + 10 * number,
    } | rest
    return WaveReport(wave=number, agents=agents, **given)


def good(**rest: Any) -> Story:
    """A verification in two waves in which everybody is content."""
    waves = [wave(1, agent("auditor"), agent("enforcer")), wave(2, agent("reviewer", 2, score=9.5))]
    return Story(verifiers=[model("auditor"), model("enforcer"), model("reviewer", 2)], waves=waves, **rest)


def bad(**rest: Any) -> Story:
    """The same with findings: two of them are the same one, one cannot be, and the second wave was not started."""
    shell = finding(
        severity=Severity.CRITICAL, cwe="CWE-78", fix="use a list", replacement="    subprocess.run([name])"
    )
    unused = finding("the result is never used", 6, severity=Severity.LOW, rule="W1")
    first = agent("auditor", 1, Ending.FAILED, [shell], rejected=(rejected(),))
    second = agent("enforcer", 1, Ending.PASSED, [replace(shell, severity=Severity.MEDIUM, fix=""), unused])
    given: dict[str, Any] = {"left_out": [LeftOut(path="logo.png", why="binary")]} | rest
    return Story(
        verifiers=[model("auditor"), model("enforcer"), model("reviewer", 2)],
        waves=[wave(1, first, second, why="auditor failed")],
        **given,
    )


HOSTILE = (
    "]]> </script><script>boom()</script> <img src=x onerror=boom()> </system-out>",
    "| a | b |\n|---|---|\n\n# title\n[click](https://evil.example) @everyone www.evil.example #1",
    "```\n</details><b>out</b>\n````\n~~~\n$$x$$ <!-- \u2028\u2029 &amp; &#64;team `x`",
    "\x00\x07\x1b[31mred\x1b[0m\x9b \ud800 \ufffe \u202egnp.exe 🧨 é",
)


def hostile() -> Story:
    """A verification in which everything that somebody else wrote is meant to do harm."""
    found = [
        finding(text, 1 + place, file=f"src/a b#{place}%|`<b>@x.py", fix=text, rule=text, replacement=text)
        for place, text in enumerate(HOSTILE)
    ]
    thrown = tuple(Rejected(finding=finding(text, 9, cwe=text), why=text) for text in HOSTILE)
    thresholds = tuple(ThresholdResult(expression=text, holds=False, why=text) for text in HOSTILE)
    told: dict[str, Any] = {"rejected": thrown, "thresholds": thresholds, "failures": HOSTILE, "model": HOSTILE[3]}
    broken = agent("broken", 1, Ending.BROKEN, why=HOSTILE[2], failures=HOSTILE, codes={HOSTILE[1]: 1})
    return Story(
        verifiers=[model("auditor"), model("broken"), model("reviewer", 2)],
        waves=[wave(1, agent("auditor", 1, Ending.FAILED, found, why=HOSTILE[1], **told), broken, why=HOSTILE[0],
                    thresholds=thresholds)],
        files={f"src/a b#{place}%|`<b>@x.py": CODE for place in range(4)} | {"src/a.py": CODE},
        infos={"src/a.py": {"note": HOSTILE[1]}},
        left_out=[LeftOut(path=text.replace("\x00", ""), why=text) for text in HOSTILE],
        name=HOSTILE[0],
        state=RunState.FAILED,
        error={"code": "x", "message": HOSTILE[1]},
    )  # fmt: skip


async def fill(store: Store, story: Story) -> Run:
    """Put a verification into the store, as the workload does."""
    files = tuple(story.files)
    spec = Verification(root="/repo", files=files, verifiers=tuple(story.verifiers), **story.spec)
    new = NewRun(id=RunId(story.run), workload="waves", spec=stored(spec), created_at=story.at, name=story.name, seed=7)
    run = await store.runs.create(new)
    claim = await store.leases.claim(run.id, DRIVER, run.lease.epoch, story.at, story.at + 15)
    keeper = _Keeper(store, run.id, claim.epoch, story.at)
    if story.read:
        await keeper.step(files_key(0), [_source(path, text) for path, text in story.files.items()])
        await keeper.step(SNAPSHOT, _snapshot(story))
    for number, cost in enumerate(story.paid):
        await keeper.call(f"call/{number}", cost)
    if story.batch:
        await keeper.batch(BatchId(f"b{story.run}"), story.batch)
    for one in story.waves:
        await keeper.step(report_key(one.wave), one)
    if story.cleared is not None:
        await keeper.step(CLEARED, list(story.cleared))
    if story.state is RunState.RUNNING:
        found = await store.runs.get(run.id)
        assert found is not None
        return found
    at, error = story.at + story.seconds, dict(story.error) if story.error else None
    ending = base.RunRelease(state=story.state, reason=str(story.state), at=at, error=error)
    return await store.leases.release(run.id, claim.epoch, ending)


def _source(path: str, text: str) -> Source:
    return Source(path=path, digest=sha256(text.encode()).hexdigest(), text=text)


def _snapshot(story: Story) -> VerifySnapshot:
    files = [
        FileInfo(path=path, digest="d", lines=len(_source(path, text).lines), bytes=len(text))
        for path, text in story.files.items()
    ]
    told = tuple(replace(file, **story.infos.get(file.path, {})) for file in files)
    return VerifySnapshot(files=told, left_out=tuple(story.left_out), pages=1)


class _Keeper:
    """Writes into the journal of one run."""

    def __init__(self, store: Store, run: RunId, epoch: int, at: float) -> None:
        self._store, self._run, self._epoch, self._at = store, run, epoch, at
        self._levels = (Level(id=f"run:{run}", cap=None),)

    async def step(self, key: str, value: Any) -> None:
        await self._store.journal.record(
            Record(
                run=self._run,
                epoch=self._epoch,
                key=key,
                kind=EntryKind.STEP,
                digest="",
                value=msgspec.to_builtins(value),
                at=self._at,
            )
        )

    async def call(self, key: str, cost: int) -> None:
        await self._store.journal.open(self._opening(key))
        await self._store.journal.settle(self._settlement(key, replied(cost), 0))

    async def batch(self, name: BatchId, members: Sequence[tuple[int, int] | None]) -> None:
        openings = [self._opening(f"wave/1/{name}/{place}") for place in range(len(members))]
        seats = [Member(opening=one, place=place, size=9, max_tokens=5) for place, one in enumerate(openings)]
        plan = Plan(
            id=name, endpoint=ENDPOINT, nonce="n", tariffs={}, members=seats, bodies=[], bytes=0, at=self._at
        )  # fmt: skip
        await self._store.batches.plan(plan)
        expired = Failed(error={"code": "expired"}, uncertain=False, gives_up=True, ended_as=AttemptState.EXPIRED)
        settlements = [
            self._settlement(f"wave/1/{name}/{place}", expired, 0)
            if prices is None
            else self._settlement(f"wave/1/{name}/{place}", replied(prices[0]), prices[1])
            for place, prices in enumerate(members)
        ]
        page = ResultPage(batch=name, settlements=settlements, lines=(b"{}\n",), at=self._at + 5)
        await self._store.batches.settle(page)

    def _opening(self, key: str) -> Opening:
        return Opening(
            attempt=AttemptId(run=self._run, key=key, n=1, epoch=self._epoch),
            digest="d",
            agent="sim/echo",
            request='{"messages":[]}',
            most=Microdollars(1_000_000),
            levels=self._levels,
            at=self._at,
            first=True,
        )

    def _settlement(self, key: str, outcome: Outcome, live: int) -> Settlement:
        return Settlement(
            attempt=AttemptId(run=self._run, key=key, n=1, epoch=self._epoch),
            outcome=outcome,
            reserved=Microdollars(1_000_000),
            levels=self._levels,
            at=self._at + 1,
            live_cost=Microdollars(live),
        )


@asynccontextmanager
async def opened(folder: Path, story: Story) -> AsyncIterator[tuple[WavesRun, VerifyReport]]:
    """Open a story as a report sees it."""
    store = open_sqlite(folder / "muster.db")
    try:
        waves = await open_waves_run(store, await fill(store, story))
        yield waves, await summarize(waves)
    finally:
        await store.maintenance.close()


async def summary(folder: Path, story: Story) -> VerifyReport:
    """Give the summary of a story."""
    async with opened(folder, story) as (_, report):
        return report


async def written(folder: Path, story: Story, format_name: str) -> str:
    """Give a report of a story as it stands in a file."""
    path = folder / "report"
    async with opened(folder, story) as (waves, report):
        await write_file(path, lambda out: report_of(waves, report).write(format_name, out))
    return path.read_text(encoding="utf-8")
