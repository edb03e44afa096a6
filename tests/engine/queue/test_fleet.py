"""What becomes of a job, decided from values; and when a server drives runs itself."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from muster.domain.errors import AwaitsSignal
from muster.domain.ids import RunId
from muster.domain.run import Lease, Run, RunState
from muster.engine.queue.base import HandleJob, JobAnswer, OfferedRun, QueuedJob, QueueServer, is_due, queue_of
from muster.engine.queue.fleet import LATER_SECONDS, SEEN_SECONDS, FallbackDelivery, answer_of

RUN = Run(
    id=RunId("r1"),
    workload="ask",
    spec={},
    state=RunState.QUEUED,
    created_at=0.0,
    lease=Lease(epoch=0, driver=None, until=0.0),
    submitted=True,
)
STANDS = {"run": "r1", "endedReason": None}
FAILED: dict[str, Any] = {"error": {"message": "no"}}


@pytest.mark.parametrize(
    ("state", "taken", "wanted", "answer"),
    [
        (RunState.COMPLETED, True, False, JobAnswer(value={**STANDS, "state": "completed"})),
        (RunState.COMPLETED, False, True, JobAnswer(value={**STANDS, "state": "completed", "result": 7})),
        (RunState.CANCELED, True, True, JobAnswer(value={**STANDS, "state": "canceled", "result": 7})),
        (RunState.FAILED, True, False, JobAnswer(failure="run r1 failed: no", retryable=True)),
        (RunState.TIMEOUT, False, True, JobAnswer(failure="run r1 timeout: no", retryable=True)),
        (RunState.FAILED, False, False, JobAnswer(value={**STANDS, "state": "failed"})),
        (RunState.INTERRUPTED, True, False, JobAnswer(again_in=0.0)),
        (RunState.INTERRUPTED, False, False, JobAnswer(value={**STANDS, "state": "interrupted"})),
        (RunState.RUNNING, False, False, JobAnswer(value={**STANDS, "state": "running"})),
        (RunState.RUNNING, False, True, JobAnswer(again_in=LATER_SECONDS)),
        (RunState.WAITING, True, True, JobAnswer(again_in=LATER_SECONDS)),
    ],
)
def test_a_job_is_answered_by_how_its_run_stands(state: RunState, taken: bool, wanted: bool, answer: JobAnswer) -> None:
    run = replace(RUN, state=state, result=7, error=FAILED["error"])
    assert answer_of(OfferedRun(run=run, taken=taken), wanted=wanted) == answer


@pytest.mark.parametrize("reason", ["budget", "bad_argument", "configuration", "bad_file"])
def test_a_job_whose_run_another_attempt_could_not_help_fails_for_good(reason: str) -> None:
    run = replace(RUN, state=RunState.FAILED, ended_reason=reason, error=FAILED["error"])
    assert answer_of(OfferedRun(run=run, taken=True), wanted=True) == JobAnswer(failure="run r1 failed: no")


@pytest.mark.parametrize("wanted", [True, False])
def test_a_job_of_a_run_that_is_not_here_fails_for_good(wanted: bool) -> None:
    answer = answer_of(OfferedRun(run=None, taken=False), wanted=wanted)
    assert "has no such run" in answer.failure
    assert not answer.retryable


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({}, True),
        ({"state": RunState.INTERRUPTED}, True),
        ({"state": RunState.WAITING, "ended_reason": "left_waiting"}, True),
        ({"state": RunState.WAITING, "ended_reason": AwaitsSignal.code}, False),
        ({"state": RunState.COMPLETED}, False),
        ({"submitted": False}, False),
        ({"submitted": False, "parent": RunId("r0")}, True),
    ],
)
def test_a_run_is_due_when_it_was_submitted_and_nobody_has_it(changes: dict[str, Any], due: bool) -> None:
    assert is_due(replace(RUN, **changes)) is due


def test_a_job_names_a_run_or_is_the_work_of_another_program() -> None:
    assert QueuedJob(id="1", queue="runs", data={"run": "r1"}).run == "r1"
    assert QueuedJob(id="1", queue="battles", data={"agentId": "a"}).run is None
    assert QueuedJob(id="1", queue="battles", data=["run"]).run is None
    assert [queue_of(name) for name in ("battle", "scale", "mine")] == ["battles", "scale-tests", "runs"]


@dataclass
class ScriptedQueue:
    """A queue that says which of its queues are served; it delivers nothing."""

    alive: frozenset[str] = frozenset()
    down: bool = False
    announced: list[RunId] = field(default_factory=list)

    async def announce(self, run: Run) -> None:
        self.announced.append(run.id)

    async def listen(self, queues: Iterable[str], most: int, handle: HandleJob) -> None:
        return None

    async def report(self, job: QueuedJob, progress: Any) -> None:
        return None

    async def promote(self, queues: Iterable[str]) -> None:
        return None

    async def waiting(self, queues: Iterable[str]) -> int:
        return 0

    async def server(self) -> QueueServer:
        return QueueServer()

    async def stop(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def beat(self, queues: Iterable[str]) -> None:
        return None

    async def is_beating(self, queues: Iterable[str]) -> bool:
        return True

    async def withdraw(self, queues: Iterable[str], *, last: bool) -> None:
        return None

    async def canceled(self, runs: Collection[RunId]) -> Collection[RunId]:
        return ()


async def test_a_server_relies_on_what_it_knows_of_workers_until_it_would_take_runs_itself() -> None:
    everything = frozenset({"battles", "scale-tests", "runs"})
    known, alive, asked = everything, everything, list[float]()

    async def served(within: float) -> frozenset[str]:
        nonlocal known
        asked.append(within)
        known = known if within else alive
        return known

    delivery = FallbackDelivery(served=served)
    assert not (await delivery.look((), offered=False)).take
    known = frozenset()  # nothing was heard of them for a while
    assert not (await delivery.look((), offered=False)).take
    alive = frozenset()  # they are dead
    assert (await delivery.look(())).take == everything
    alive = everything
    assert not (await delivery.look(())).take
    assert asked == [SEEN_SECONDS, SEEN_SECONDS, 0.0, 0.0, 0.0]


async def test_a_server_drives_what_no_worker_takes_and_says_so_once() -> None:
    everything = frozenset({"battles", "scale-tests", "runs"})
    alive, notes = frozenset[str](), list[str]()

    async def served(within: float) -> frozenset[str]:
        return alive

    delivery = FallbackDelivery(served=served)
    delivery.on_note = notes.append
    for _ in range(2):
        look = await delivery.look(())
        assert (look.take, look.present, look.serves) == (everything, True, False)
    alive = everything
    look = await delivery.look(())
    assert (look.take, look.present) == (frozenset(), False)
    assert (await delivery.look([RunId("r1")])).present  # while it still drives a run of before
    alive = frozenset({"battles"})
    assert (await delivery.look(())).take == {"scale-tests", "runs"}
    alive = frozenset({"battles", "scale-tests"})
    assert (await delivery.look(())).take == {"runs"}
    assert notes == [
        "runs are driven in this process, within its limits: no worker is alive",
        "runs are driven by workers",
        "runs in the queues runs and scale-tests are driven in this process: no worker takes them",
        "runs in the queue runs are driven in this process: no worker takes them",
    ]
