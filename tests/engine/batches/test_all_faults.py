"""Everything goes wrong at once, each thing one time in ten: every call ends once, and nothing is paid unseen."""

import time
from collections import Counter
from pathlib import Path

import pytest

from muster.app import Muster
from muster.domain.agent import Timeouts
from muster.domain.batch import BatchState
from muster.domain.run import Run, RunState
from muster.engine.batches.base import Patience
from tests.engine.batches.house import House, ask_all, batch, give_up_and_go_on, open_house, questions

OPERATIONS = ("batch_create", "batch_retrieve", "batch_list", "batch_results", "file_upload", "file_content")
OF_REQUESTS = ("429", "500", "529", "timeout", "cut_before", "cut_after", "cut_stream", "truncated", "garbage")
OF_MEMBERS = ("400", "429", "500", "529", "duplicate", "missing", "unknown_id", "expired", "truncated")
OF_BATCHES = ("expiry", "late_404", "unknown_status", "no_results_url", "validation_failure")
ONE_IN_TEN = {
    **{f"{operation}/{kind}": 0.1 for operation in OPERATIONS for kind in OF_REQUESTS},
    **{f"member/{kind}": 0.1 for kind in OF_MEMBERS},
    **{f"batch/{kind}": 0.1 for kind in OF_BATCHES},
}
PATIENCE = Patience(settle=0.02, poll_first=0.01, poll_longest=0.05, grace=0.4, deadline=1.5, most_requests=25)
SHORT = Timeouts(connect=5.0, idle=0.2, call=0.2, grace=0.5)
HONEST = {"invalid_request", "retries_exhausted"}


async def check(house: House, muster: Muster, run: Run, asked: dict[str, str]) -> None:
    """Every call has its own answer or an honest error; every member of every batch has one outcome."""
    assert run.state is RunState.COMPLETED, run.error
    assert run.result.keys() == asked.keys()
    for key, answer in run.result.items():
        assert answer.get("text") == asked[key] or answer.get("error") in HONEST, answer
    books = await house.check(muster, run)
    audit = house.audit
    assert audit.cost <= run.spent.settled
    assert all(each.state in (BatchState.COLLECTED, BatchState.REFUSED, BatchState.ABANDONED) for each in books.batches)
    ended = Counter(str(each.state) for each in books.batches)
    print(
        f"{len(asked)} calls: {len(books.texts)} answered, {audit.calls} paid, {len(books.uncertain)} uncertain, "
        f"{len(books.batches)} batches {dict(ended)}, {sum(audit.faults.values())} faults, {audit.requests} requests"
    )


async def endure(folder: Path, agent: str, calls: int, seed: int) -> None:
    asked, began = questions(calls), time.monotonic()
    async with open_house(folder) as house:
        house.play(rates=ONE_IN_TEN, seed=seed, at_most_per_digest=2, counted=True)
        async with house.open(patience=PATIENCE, batch_timeouts=SHORT) as muster:
            run, rounds = await give_up_and_go_on(muster, await ask_all(muster, agent, asked, batch(batches=10)))
            await check(house, muster, run, asked)
            print(f"{agent}, seed {seed}: given up {rounds} times, {time.monotonic() - began:.1f} s")


async def test_80_calls_among_all_faults_end_once_each(tmp_path: Path, agent: str) -> None:
    await endure(tmp_path / "house", agent, 80, seed=1)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(8))
async def test_500_calls_among_all_faults_end_once_each(tmp_path: Path, agent: str, seed: int) -> None:
    await endure(tmp_path / "house", agent, 500, seed)
