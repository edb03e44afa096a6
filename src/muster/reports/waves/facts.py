"""What is known of a verification as a run: its state, its times, its money."""

from dataclasses import dataclass
from pathlib import PurePath

from muster.domain.money import NOTHING, Microdollars
from muster.domain.run import Run, RunState
from muster.reports.waves.run import WavesRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a verification cost, and what it would have cost without batches."""

    billed: Microdollars = NOTHING
    imputed: Microdollars = NOTHING  # covered by a subscription
    uncertain: Microdollars = NOTHING  # may have been charged besides
    batches: int = 0
    batch: Microdollars = NOTHING  # the part of it that was spent in batches
    batch_live: Microdollars = NOTHING  # what the same calls cost when they are sent live
    parked: int = 0  # calls whose batch has not ended

    @property
    def known(self) -> Microdollars:
        """What is known to have been spent, by whoever pays for it."""
        return Microdollars(self.billed + self.imputed)

    @property
    def live(self) -> Microdollars:
        """What all of it would have cost live."""
        return Microdollars(self.known - self.batch + self.batch_live)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a run that stand at the head of every report."""

    id: str
    name: str | None
    title: str
    state: RunState
    epoch: int  # how often somebody has taken it up
    ended_reason: str | None
    error: str
    root: str
    dispatch: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    cost: Cost

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return None if self.started_at is None or self.ended_at is None else max(0.0, self.ended_at - self.started_at)


async def run_facts(waves: WavesRun) -> Facts:
    """Read the facts of a run."""
    run = waves.run
    return Facts(
        id=run.id,
        name=run.name,
        title=run.name or f"verification of {PurePath(waves.spec.root).name or waves.spec.root}",
        state=run.state,
        epoch=run.lease.epoch,
        ended_reason=run.ended_reason,
        error="" if not run.error else str(run.error.get("message", "")),
        root=waves.spec.root,
        dispatch="live" if waves.spec.live else str(run.dispatch.mode),
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        cost=await _cost(waves, run),
    )


async def _cost(waves: WavesRun, run: Run) -> Cost:
    saving = await waves.store.batches.saving(run.id)
    return Cost(
        billed=run.spent.billed,
        imputed=run.spent.imputed,
        uncertain=run.spent.uncertain,
        batches=saving.batches,
        batch=saving.cost,
        batch_live=saving.live_cost,
        parked=saving.parked,
    )
