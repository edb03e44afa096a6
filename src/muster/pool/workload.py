"""The workload of a task: done in a slot, reviewed by a person if that is asked for, again until it is approved."""

from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import Any

from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration, CallFailed
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.pool.isolation import save, setup_of, state_before, working_folder
from muster.pool.permissions import call_with_permissions
from muster.pool.prompts import request_for
from muster.pool.setup import prepare_tree
from muster.pool.tasks import INBOX, REVIEW, SLOT_KEY, TREE_KEY, WORKLOAD, read_slot, read_task, require_task
from muster.text.words import count as counted


class TaskRejected(CallFailed):
    """A person rejected the work as often as the task allows."""

    code = "rejected"


def work_key(round_: int) -> str:
    """Return the key of the call of a round."""
    return f"work/{round_:03d}"


def review_key(round_: int) -> str:
    """Return the key of the review of a round."""
    return f"review/{round_:03d}"


def saved_key(round_: int) -> str:
    """Return the key of what the branch of a task held after a round."""
    return f"saved/{round_:03d}"


def repository_key(round_: int, run: str) -> str:
    """Return the key of the user's repository as it was before a round of a run."""
    return f"repository/{round_:03d}/{run}"


@workload(WORKLOAD, check=require_task)
async def task(ctx: Context, spec: Any) -> Json:
    """Do a task in the slot that it was given, and return what it came to."""
    asked = read_task(spec)
    kept = await ctx.recall(SLOT_KEY)
    if kept is None:
        raise BadConfiguration("a task needs a slot", suggestions=("muster pool start",))
    slot = read_slot(kept)
    folder, tree = await working_folder(slot)
    if tree is not None:
        told = {"branch": tree.branch, "path": str(tree.path), "base": tree.base, "notes": list(tree.notes)}
        await ctx.emit(TREE_KEY, "task.tree", told)
        await prepare_tree(ctx, tree, setup_of(slot), "task.setup")
    feedback: list[str] = []
    granted: Sequence[str] = ()  # tools, by a person, for the rest of the task
    saved: Any = None  # what its branch holds, and what else changed in the user's repository
    for round_ in count():
        save_round = None
        if slot.is_compared:
            before = await ctx.step(repository_key(round_, ctx.run), partial(state_before, slot))
            save_round = partial(save, slot, before, (saved or {}).get("repository_changes", ()))
        mail = await ctx.collect(f"mail/{round_:03d}", INBOX, slot=slot.id)
        try:
            session = asked.session if not round_ else None
            request = request_for(asked, slot, feedback=feedback, mail=mail, folder=folder, session=session)
            reply, granted = await call_with_permissions(ctx, slot, request, work_key(round_), granted)
        except CallFailed:
            if save_round is not None:  # what it has done until then is not lost
                await ctx.step(f"{saved_key(round_)}/{ctx.run}", save_round)
            raise
        saved = None if save_round is None else await ctx.step(saved_key(round_), save_round)
        if not asked.review:
            return _result(reply, feedback, saved)
        review = await ctx.receive(review_key(round_), REVIEW)
        decided: Any = {"approved": True} if review is None else review.payload
        if decided["approved"]:
            return _result(reply, feedback, saved)
        feedback.append(str(decided["feedback"]))
        if len(feedback) >= asked.max_rejections:
            raise TaskRejected(f"rejected {counted(len(feedback), 'time')}; the last feedback: {feedback[-1]}")
    raise AssertionError  # it counts without end


def _result(reply: Reply, feedback: Sequence[str], saved: Json) -> dict[str, Json]:
    trace = reply.trace
    return {
        "saved": saved,
        "output": reply.text,
        "data": reply.data,
        "model": reply.model,
        "session_id": trace.session if trace else None,
        "turns": trace.turns if trace else None,
        "rejections": len(feedback),
    }
