"""The tables of a store and what orders their rows: for copies, and for whatever is done to all of them."""

from collections.abc import Mapping

TABLES: Mapping[str, tuple[str, ...]] = {  # name: the columns of its primary key
    "agent_costs": ("day", "agent", "lane", "run_id"),
    "announcements": ("run_id",),
    "attempts": ("run_id", "key", "n"),
    "audit": ("seq",),
    "awaits": ("run_id", "address", "channel"),
    "baselines": ("name",),
    "batch_bodies": ("batch_id", "part"),
    "batch_lines": ("batch_id", "part"),
    "batch_runs": ("batch_id", "run_id"),
    "batches": ("id",),
    "budgets": ("id",),
    "events": ("run_id", "seq"),
    "figures": ("run_id",),
    "journal": ("position",),
    "media": ("digest",),
    "outcomes": ("position",),
    "partials": ("run_id", "key"),
    "pools": ("name",),
    "processes": ("token",),
    "requests": ("position",),
    "reviews": ("run_id", "case_id", "subject", "epoch", "reviewer"),
    "run_levels": ("level", "run_id"),
    "run_media": ("run_id", "digest"),
    "runs": ("id",),
    "shared_context": ("name",),
    "signals": ("address", "channel", "seq"),
    "slot_tasks": ("lineage",),
    "slots": ("name",),
    "traits": ("name",),
    "workers": ("host", "pid", "started"),
}
# How many rows are read at a time of tables whose rows are large: about a megabyte each, or up to 32.
FEW_ROWS: Mapping[str, int] = {"batch_bodies": 8, "batch_lines": 8, "media": 1}
