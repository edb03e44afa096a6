"""What of a run is in batches: which ones, how many calls, and what they cost."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.cli.batch_portrait import batch_reference, money_words
from muster.cli.portrait import run_json
from muster.domain.batch import UNDER_WAY, Batch, Saving
from muster.domain.money import to_usd
from muster.domain.run import Run

if TYPE_CHECKING:
    from muster.app import Muster

NO_SAVING = Saving()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The batches that hold calls of one run, the oldest first."""

    batches: tuple[Batch, ...] = ()
    saving: Saving = NO_SAVING

    @property
    def under_way(self) -> tuple[Batch, ...]:
        """Those that are not over."""
        return tuple(batch for batch in self.batches if batch.state in UNDER_WAY)

    def words(self) -> str:
        """Say what they cost; nothing when there are none."""
        return money_words(self.saving.cost, self.saving.live_cost) if self.batches else ""

    def json(self) -> dict[str, Any]:
        """Give them as JSON."""
        saving = self.saving
        return {
            "parked": saving.parked,
            "batches": [batch_reference(batch) for batch in self.batches],
            "batch_usd": to_usd(saving.cost) if self.batches else None,
            "live_usd": to_usd(saving.live_cost) if self.batches else None,
        }


async def pooled(muster: "Muster", run: Run) -> Pooled:
    """Read what of a run is in batches."""
    batches = await muster.store.batches.of_run(run.id)
    return Pooled(batches=tuple(batches), saving=await muster.store.batches.saving(run.id)) if batches else Pooled()


async def run_data(muster: "Muster", run: Run) -> dict[str, Any]:
    """Give a run with its batches as JSON."""
    return run_json(run) | (await pooled(muster, run)).json()
