"""A store claimed as a whole: a vacuum has it for itself, and no run is claimed meanwhile."""

import json
from dataclasses import asdict, dataclass, replace

from muster.domain.errors import Conflict
from muster.domain.run import Driver
from muster.store.queries import DatabaseConnection, first

CLAIM = "claim"  # the trait that says who has the store for itself
CLAIM_SECONDS = 15.0  # for SQLite it is written once: nobody else can write while the vacuum has the lock
CLAIMS = "claims"  # the lock that whoever claims a run shares, and whoever claims the store has alone


class StoreClaimed(Conflict):
    """Another process has the store for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreClaim:
    """Who has the store for itself, and until when at the latest."""

    host: str
    pid: int
    until: float

    @property
    def text(self) -> str:
        """Spell it for the store."""
        return json.dumps(asdict(self))


def claim_store(database: DatabaseConnection, driver: Driver, at: float) -> StoreClaim:
    """Claim the store; refused while runs are driven or another process has it.

    Nobody may claim a run between the look and the write: SQLite has one writer, others need the lock `CLAIMS`.
    """
    require_unclaimed(database, at)
    driven = database.rows("select_driven", {"now": at})
    if driven:
        which = ", ".join(f"{row['id']} by process {row['driver_pid']} on {row['driver_host']}" for row in driven[:5])
        more = f" and {len(driven) - 5} more" if len(driven) > 5 else ""
        raise Conflict(
            f"runs in progress would have to wait for minutes: {which}{more}",
            suggestions=("wait until they are over, or stop them with Ctrl-C and resume them later",),
        )
    claim = StoreClaim(host=driver.host, pid=driver.pid, until=at + CLAIM_SECONDS)
    database.execute("set_trait", {"name": CLAIM, "value": claim.text})
    return claim


def renew_claim(database: DatabaseConnection, claim: StoreClaim, at: float) -> StoreClaim:
    """Extend a claim, unless somebody else has the store by now."""
    renewed = replace(claim, until=at + CLAIM_SECONDS)
    given = database.execute("replace_trait", {"name": CLAIM, "was": claim.text, "value": renewed.text})
    return renewed if given else claim


def unclaim_store(database: DatabaseConnection, claim: StoreClaim) -> None:
    """End a claim, unless somebody else has the store by now."""
    database.execute("delete_trait", {"name": CLAIM, "value": claim.text})


def require_unclaimed(database: DatabaseConnection, at: float) -> None:
    """Raise while another process has the store for itself; a claim that was never ended ends by itself."""
    row = first(database.rows("select_trait", {"name": CLAIM}))
    if row is None:
        return
    claim = StoreClaim(**json.loads(row["value"]))
    if at < claim.until <= at + CLAIM_SECONDS:  # one from a clock that was ahead counts for nothing
        raise StoreClaimed(
            f"process {claim.pid} on {claim.host} is vacuuming the store",
            suggestions=("wait until it is done, and try again",),
        )
