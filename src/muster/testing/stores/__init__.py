"""What every store must do, as checks that any implementation can be put through.

Each check takes an empty, open store whose only configured secret is `SECRET`, and raises AssertionError when it
breaks the contract of `muster.store.base`.
"""

from muster.testing.stores import (
    batches,
    journal,
    leases,
    lineages,
    media,
    money,
    pool,
    questions,
    runs,
    signals,
    totals,
    users,
)
from muster.testing.stores.values import (
    DAY,
    DRIVER,
    NOW,
    OTHER,
    SECRET,
    Check,
    driven,
    new_run,
    opening,
    raises,
    replied,
    settling,
)

__all__ = [
    "CHECKS",
    "DAY",
    "DRIVER",
    "NOW",
    "OTHER",
    "SECRET",
    "Check",
    "driven",
    "new_run",
    "opening",
    "raises",
    "replied",
    "settling",
]

CHECKS: tuple[Check, ...] = (
    *runs.CHECKS,
    *lineages.CHECKS,
    *journal.CHECKS,
    *money.CHECKS,
    *leases.CHECKS,
    *batches.CHECKS,
    *media.CHECKS,
    *signals.CHECKS,
    *questions.CHECKS,
    *pool.CHECKS,
    *users.CHECKS,
    *totals.CHECKS,
)
