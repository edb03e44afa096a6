"""Workers that are cut off from PostgreSQL stop driving before their leases end, and others go on with their runs."""

import asyncio
import time
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muster.engine.drive import LEASE_SECONDS
from tests.chaos import law
from tests.chaos.fleets import HERE, Command, in_flight, open_fleet, store_copy, submit, until_over, wait_until
from tests.gated_proxy import GatedProxy
from tests.rehearsal import ForkedRehearsal

CALLS = 10  # two of them are answered at once
PLACES = 4  # at a provider, of each of two workers: so many of the others, or more, are on the wire
ENDLESS_MS = 120_000


@pytest.mark.postgres
@pytest.mark.chaos
async def test_workers_that_are_cut_off_stop_before_their_leases_end_and_others_go_on(
    tmp_path: Path, database_url: str
) -> None:
    place = psycopg.conninfo.conninfo_to_dict(database_url)
    with ExitStack() as stack:
        quick = stack.enter_context(ForkedRehearsal())
        fleet = open_fleet(tmp_path, quick, stack, database_url)
        proxies, slow, cut_off = [], [], []
        for host in ("frozen", "cut"):
            # Each worker has a provider of its own that answers no call to Anthropic, so that its calls are known.
            sim = stack.enter_context(ForkedRehearsal(latency_ms=ENDLESS_MS))
            proxy = GatedProxy(Path(str(place["host"])) / ".s.PGSQL.5432")
            port = stack.enter_context(proxy.listening())
            url = f"postgresql://muster@127.0.0.1:{port}/{place['dbname']}"
            variables = {"MUSTER_DATABASE_URL": url, "ANTHROPIC_BASE_URL": sim.anthropic}
            fleet.start(Command(("worker", "--quiet", "--concurrency", "1"), host, variables=variables))
            proxies.append(proxy)
            slow.append(sim)
            cut_off.append(fleet.processes[-1][1])
        runs = await submit(fleet, 2, CALLS)
        await asyncio.to_thread(wait_until, lambda: min([in_flight(sim) for sim in slow]) >= PLACES)
        await asyncio.to_thread(wait_until, lambda: _settled(database_url) == 4)
        fleet.start(Command(("worker", "--quiet"), HERE))
        proxies[0].freeze()
        proxies[1].cut()
        since = time.monotonic()
        fleet.deaths.update({process.pid: time.time() for process in cut_off})
        await asyncio.to_thread(wait_until, lambda: [in_flight(sim) for sim in slow] == [0, 0])
        assert time.monotonic() - since < LEASE_SECONDS
        asked = [_audit(sim)["requests"] for sim in slow]
        assert _calls(quick) == 4, "a run was taken from a worker whose lease had not ended"
        await until_over(fleet, runs)
        for proxy in proxies:
            proxy.open()
        for process in cut_off:  # what they still had to write is refused when they reach the server again
            process.terminate()
            assert await asyncio.to_thread(process.wait) == 0
        with closing(await store_copy(fleet)) as database:
            assert list(law.violations(database, _sum(map(_audit, [quick, *slow])))) == []
            assert list(law.of_drivers(database, fleet.deaths)) == []
            unsure = "SELECT COUNT(*) FROM attempts WHERE state = 'uncertain'"  # also of what was just about to be sent
            assert database.execute(unsure).fetchone()[0] >= sum(asked)
            assert [_audit(sim)["requests"] for sim in slow] == asked  # they asked nothing any more


def _calls(sim: ForkedRehearsal) -> int:
    """Return how many calls a provider has answered."""
    return int(_audit(sim)["calls"])


def _settled(database_url: str) -> int:
    """Return how many calls have their replies in the store."""
    with psycopg.connect(database_url) as session:
        found = session.execute("SELECT COUNT(*) FROM journal WHERE state = 'done'").fetchone()
    return int(found[0]) if found else 0


def _audit(sim: ForkedRehearsal) -> dict[str, Any]:
    return law.read_audit(sim.audit_url)


def _sum(audits: Any) -> dict[str, Any]:
    """Return the audits of several providers as that of one."""
    by_digest: Counter[str] = Counter()
    charged: Counter[str] = Counter()
    cost = 0.0
    for audit in audits:
        by_digest.update(audit["by_digest"])
        charged.update(audit["cost_usd_by_digest"])
        cost += audit["cost_usd"]
    return {"by_digest": by_digest, "cost_usd_by_digest": charged, "cost_usd": cost, "batches": []}
