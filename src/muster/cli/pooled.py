"""What of a run is in batches, in words."""

from typing import TYPE_CHECKING

from muster.cli.batch_portrait import money_words

if TYPE_CHECKING:
    from muster.app.run_details import RunBatches


def saving_words(found: "RunBatches") -> str:
    """Return what the batches of a run cost, in words; nothing when there are none."""
    return money_words(found.saving.cost, found.saving.live_cost) if found.batches else ""
