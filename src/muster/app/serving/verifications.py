"""Verifications that are requested over a network: of files that the project knows, by the agents that it declares."""

from muster.app.parts.parts import MusterParts
from muster.app.runs.handle import RunHandle
from muster.app.verify.request import VerifyRequest, ordered_choice, ordered_dispatch
from muster.app.verify.values import FileSelection
from muster.app.views.errors import why_nothing
from muster.domain.errors import BadArgument, Conflict, ErrorCollector
from muster.verify.order import ChangedFiles, VerificationOrder


async def submit_verification(muster: MusterParts, order: VerificationOrder) -> RunHandle:
    """Store a verification for the workers; raises Conflict when there is nothing to verify."""
    checks = ErrorCollector()
    checks.check(muster.library.require_agents, [("model", order.model)])
    selection = checks.finish(_selection, muster, order)
    request = VerifyRequest(
        folder=muster.settings.folder,
        selection=selection,
        choice=ordered_choice(order),
        options=muster.runs.ordered(order, ordered_dispatch(order)),
        queued=True,
    )
    started = await muster.verify.begin(request)
    if started.handle is None:
        raise Conflict(why_nothing(selection, started.prepared))
    return started.handle


def _selection(muster: MusterParts, order: VerificationOrder) -> FileSelection:
    """Return the selection of files; a request names no paths."""
    if order.ref is not None and order.files is not ChangedFiles.CHANGED:
        raise BadArgument("can be given for changed files only", argument="ref")
    return FileSelection(
        changed=order.files is ChangedFiles.CHANGED,
        ref=order.ref,
        staged=order.files is ChangedFiles.STAGED,
        pending=muster.settings.verify.pending if order.files is ChangedFiles.PENDING else None,
    )
