"""What a completed run came to, in a few words, taken from its stored spec and result."""

from muster.app.kinds import kind_of
from muster.domain.kind import RunVerdict, Tone
from muster.domain.run import Run, RunState

__all__ = ["RunVerdict", "Tone", "verdict_of"]


def verdict_of(run: Run) -> RunVerdict | None:
    """Return what a run came to; None while it has not completed, and for work that has no verdict."""
    verdict = kind_of(run).verdict
    if verdict is None or run.state is not RunState.COMPLETED:
        return None
    try:
        return verdict(run.spec, run.result, run)
    except (AttributeError, KeyError, TypeError, ValueError):  # of a later version, or imported
        return None
