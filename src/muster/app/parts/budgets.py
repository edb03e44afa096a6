"""Budgets of servers: what everything that is started through a kind of server may cost. `Muster.server_budgets`.

The cap stands in the ledger, above the runs: no number of runs at the same time can exceed it, and a server that is
started again does not start it anew.
"""

from dataclasses import dataclass

from muster.app.base.backend import Backend
from muster.domain.budget import Balance, server_level
from muster.domain.money import Microdollars
from muster.settings import parse_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFunds:
    """What runs that were started through a kind of server have spent, what they hold, and may spend; None: no cap."""

    spent: Microdollars
    reserved: Microdollars
    cap: Microdollars | None

    @property
    def left(self) -> Microdollars | None:
        """What is neither spent nor held; None without a cap."""
        return None if self.cap is None else Microdollars(max(self.cap - self.spent - self.reserved, 0))


class ServerBudgets:
    """Sets and reads the budgets of servers."""

    def __init__(self, backend: Backend) -> None:
        self._store = backend.store

    def level(self, server: str) -> str:
        """Return the level of the ledger that runs started through a kind of server count under."""
        return server_level(server)

    async def set(self, server: str, budget_usd: str | float) -> None:
        """Set what all runs that are ever started through a kind of server may cost in total."""
        cap = parse_budget(budget_usd)
        if cap is not None:
            await self._store.runs.cap_level(server_level(server), cap)

    async def funds(self, server: str) -> ServerFunds:
        """Return what is spent and left."""
        level = server_level(server)
        found = (await self._store.runs.balances([level])).get(level, Balance())
        return ServerFunds(spent=found.settled, reserved=found.reserved, cap=found.cap)
