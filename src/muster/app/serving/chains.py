"""Chains that are requested over a network: those of the library."""

from muster.app.parts.library import LibraryKind
from muster.app.parts.parts import MusterParts
from muster.app.runs.handle import RunHandle
from muster.pool.chains.order import ChainOrder


async def submit_chain(muster: MusterParts, order: ChainOrder) -> RunHandle:
    """Store a chain for the workers; it works in the folder of the project, or in a worktree of it."""
    chain = muster.chains.load(muster.library.find(LibraryKind.CHAIN, order.chain or "", "chain"))
    spec = muster.chains.ordered(order, chain, order.inputs, folder=muster.settings.folder)
    return await muster.chains.submit(spec, muster.runs.ordered(order))
