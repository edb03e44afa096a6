"""The chain workload: steps in order, groups at once, each row of inputs in a child run of its own."""

from dataclasses import replace
from functools import partial
from typing import Any

from muster.domain.canonical import Json
from muster.domain.dispatch import Mode
from muster.domain.errors import ChildFailed, StepFailed
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.pool.chains.chain import WORKLOAD, ChainSpec, StepRecord, StepStatus, row_key
from muster.pool.chains.isolation import compared, open_tree
from muster.pool.chains.rules import complete_input
from muster.pool.chains.spec import read_spec, stored
from muster.pool.chains.step import run_step
from muster.text import typed

MAX_NAMED = 5  # failed rows
MAX_TOGETHER = 1_000  # rows that begin before the first of them waits in a batch


@workload(WORKLOAD, check=read_spec)
async def chain(ctx: Context, spec: Any) -> Any:
    """Run the steps of a chain, and return what each of them gave."""
    wanted = read_spec(spec)
    return await compared(ctx, wanted, partial(_run_rows if wanted.rows else _run_chain, ctx, wanted))


async def _run_chain(ctx: Context, spec: ChainSpec) -> Json:
    """Run the steps in the tree of the chain, if it has one; its work is kept, also when a step failed."""
    tree = await open_tree(ctx, spec)
    if tree is None:
        return await _run_steps(ctx, spec)
    try:
        result = await _run_steps(ctx, replace(spec, tree=str(tree.folder)))
    except StepFailed as error:
        saved = await tree.save(ctx)
        raise StepFailed(f"{error.message}; its work is on the branch {saved['branch']}") from error
    return {**result, "saved": dict(await tree.save(ctx))}


async def _run_steps(ctx: Context, spec: ChainSpec) -> dict[str, Json]:
    spec = replace(spec, input=complete_input(spec.chain, spec.input))
    records: list[StepRecord] = []
    for group in spec.chain.groups:
        done = await ctx.gather(*(run_step(ctx, spec, step) for step in group))
        records += done
        _require_done(done)
        spec = replace(spec, known=spec.known.after(tuple(done)))
    return {
        "output": spec.known.previous or "",
        "cost": sum(record.cost for record in records),
        "steps": [typed.to_builtins(record) for record in records],
    }


def _require_done(records: list[StepRecord]) -> None:
    failed = [record for record in records if record.status is StepStatus.FAILED]
    if failed:
        raise StepFailed("; ".join(f"step {record.name!r} failed: {record.error}" for record in failed))


async def _run_rows(ctx: Context, spec: ChainSpec) -> Json:
    """Run the chain once for each row; a row that failed keeps no other from being done."""

    async def one(index: int, row: Any) -> dict[str, Json]:
        try:
            done: Any = await ctx.child(row_key(index), WORKLOAD, stored(spec.row(index)))
            branch = done.get("saved", {}).get("branch")
            result = {"output": done["output"], "cost": done["cost"], "branch": branch, "error": None}
        except ChildFailed as error:
            result = {"output": None, "cost": None, "branch": None, "error": error.message}
        told = {"row": index, "status": "failed" if result["error"] else "completed", "error": result["error"]}
        await ctx.emit(f"{row_key(index)}/ended", "chain.row.ended", told)
        return result

    # Rows that are asked in batches begin together, so that the same step of all of them shares a batch.
    batches = ctx.mode is Mode.BATCH or any(step.dispatch == Mode.BATCH for step in spec.chain.steps)
    window = min(len(spec.rows), MAX_TOGETHER) if batches else None
    rows: list[Any] = [result async for result in ctx.map(one, spec.rows, limit=window)]
    failed = [(index, row["error"]) for index, row in enumerate(rows) if row["error"]]
    if failed:
        named = "; ".join(f"row {index + 1}: {error}" for index, error in failed[:MAX_NAMED])
        more = f"; and {len(failed) - MAX_NAMED} more" if len(failed) > MAX_NAMED else ""
        raise StepFailed(f"{len(failed)} of {len(rows)} rows failed: {named}{more}")
    return {"rows": rows, "cost": sum(row["cost"] for row in rows)}
