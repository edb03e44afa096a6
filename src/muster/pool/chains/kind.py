"""Chains as a kind of work."""

from muster.domain.kind import WorkKind, part_of

CHAIN = WorkKind(
    workload="chain",
    word="chain",
    about="Do steps of prompts and commands, in order, each with the output of those before it.",
    module="muster.pool.chains.workload",
    command="muster chain run",
    example="muster chain run FILE",
    order="muster.pool.chains.order:ChainOrder",
    subject=lambda spec: (part_of(spec, "chain", "name"),),
    trees=lambda run: (f"chain-{run.id}",),
    tree_key="chain/tree",
)
