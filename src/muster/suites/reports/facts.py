"""The facts of a suite run: what it was, when it ran, and what it cost."""

from dataclasses import dataclass

from muster.domain.batch import Saving
from muster.domain.money import Microdollars
from muster.domain.run import Run, RunState, Spent
from muster.suites.reports.run import SuiteRun


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The facts of a run that stand at the head of every report."""

    id: str
    name: str | None
    state: RunState
    ended_reason: str | None
    error: str
    started_at: float | None
    ended_at: float | None
    spent: Spent
    cap: Microdollars | None
    dispatch: str
    saving: Saving
    suites: tuple[str, ...]
    judge: str | None  # who judged; None when nobody was asked
    epochs: int
    version: str  # of the program that ran it

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return None if self.started_at is None or self.ended_at is None else max(0.0, self.ended_at - self.started_at)

    @property
    def cost(self) -> Microdollars:
        """What is known to have been spent, by whoever pays for it."""
        return Microdollars(self.spent.billed + self.spent.imputed)

    @property
    def savings(self) -> tuple[tuple[str, Microdollars], ...]:
        """What live calls in the standard tier would have cost more than what was used instead, which is named."""
        found = (("batches", self.saving.saved), ("flex", self.saving.flex_saved))
        return tuple((name, saved) for name, saved in found if saved > 0)

    @property
    def title(self) -> str:
        """The name that a person gave it, else what it tests."""
        more = f" and {len(self.suites) - 3} more" if len(self.suites) > 3 else ""
        return self.name or ", ".join(self.suites[:3]) + more or f"run {self.id}"


async def run_facts(suite: SuiteRun) -> RunFacts:
    """Read the facts of a run."""
    run, saving = suite.run, await suite.store.batches.saving(suite.run.id)
    return RunFacts(
        id=run.id,
        name=run.name,
        state=run.state,
        ended_reason=run.ended_reason,
        error=_message(run),
        started_at=run.started_at,
        ended_at=run.ended_at,
        spent=run.spent,
        cap=run.cap,
        dispatch=str(run.dispatch.mode),
        saving=saving,
        suites=tuple(info.name for info in suite.snapshot.suites),
        judge=suite.spec.judge,
        epochs=suite.spec.epochs,
        version=_version(suite),
    )


def _message(run: Run) -> str:
    return "" if not run.error else str(run.error.get("message", ""))


def _version(suite: SuiteRun) -> str:
    packages = suite.environment.get("packages", {})
    return str(packages.get("muster-ai", "")) if isinstance(packages, dict) else ""
