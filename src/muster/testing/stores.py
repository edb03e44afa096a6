"""What every store must do, as checks that any implementation can be put through.

Each check takes an empty, open store and raises AssertionError when it breaks the contract of `muster.store.base`.
"""

from muster.testing import store_journal, store_leases, store_money, store_runs
from muster.testing.store_stage import (
    DAY,
    DRIVER,
    NOW,
    OTHER,
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
    "Check",
    "driven",
    "new_run",
    "opening",
    "raises",
    "replied",
    "settling",
]

CHECKS: tuple[Check, ...] = (*store_runs.CHECKS, *store_journal.CHECKS, *store_money.CHECKS, *store_leases.CHECKS)
