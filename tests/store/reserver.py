"""A process that reserves and settles under budgets that it shares with others; started by the tests of isolation."""

import asyncio
import json
import random
import sys
from collections import Counter

from muster.domain.budget import Granted, Level, Refused, Wait
from muster.domain.entry import EntryKind
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Driver
from muster.store.base import Record, Store
from muster.store.postgres.store import open_postgres
from muster.testing.stores import NOW, new_run, opening, replied, settling

AT_ONCE = 5
MOST = 10
SHARED = ("day:2027-01-15", "pool:shared", "user:one@2027-01-15")


class Reserver:
    """Drives one run whose calls count under the shared budgets."""

    def __init__(self, store: Store, run: RunId, epoch: int, cost: int, cap: int) -> None:
        self._store, self._run, self._epoch, self._cost = store, run, epoch, cost
        self._caps = {"pool:shared": Microdollars(cap)}
        self.counts: Counter[str] = Counter()

    def _levels(self) -> tuple[Level, ...]:
        """The same levels in any order: whoever locks them must put them in order."""
        names = [*SHARED, f"run:{self._run}"]
        random.shuffle(names)
        return tuple(Level(id=name, cap=self._caps.get(name)) for name in names)

    async def reserve(self, numbers: list[int]) -> None:
        """Reserve and settle, one call after the other, until none is left."""
        while numbers:
            number = numbers.pop()
            one = opening(self._run, self._epoch, f"k{number}", most=MOST)._replace(levels=self._levels())
            while isinstance(decision := await self._store.journal.open(one), Wait):
                self.counts["waited"] += 1
                await self._store.changes.wait(1.0, self._store.changes.commits)
            self.counts[type(decision).__name__] += 1
            if isinstance(decision, Refused):
                continue
            assert isinstance(decision, Granted)
            await self._store.journal.settle(settling(one, replied(self._cost)))
            if number % 10 == 0:
                step = f"step/{number}"
                record = Record(
                    run=self._run, epoch=self._epoch, key=step, kind=EntryKind.STEP, digest="", value=1, at=NOW
                )
                await self._store.journal.record(record)


async def main(url: str, index: int, count: int, cost: int, cap: int) -> None:
    store = open_postgres(url)
    try:
        run = await store.runs.create(new_run(f"run{index}x{cost}"))
        driver = Driver(host="here", pid=index, started="boot")
        claim = await store.leases.claim(run.id, driver, 0, NOW, NOW + 15)
        reserver = Reserver(store, run.id, claim.epoch, cost, cap)
        numbers = list(range(count))
        await asyncio.gather(*(reserver.reserve(numbers) for _ in range(AT_ONCE)))
        print(json.dumps(reserver.counts))
    finally:
        await store.maintenance.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *(int(each) for each in sys.argv[2:])))
