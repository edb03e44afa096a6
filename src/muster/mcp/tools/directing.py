"""Tools that decide about what goes on, and that direct the pool: reviews, answers, control, the pool and its slots."""

from collections.abc import AsyncIterator, Mapping

from muster.app import Muster
from muster.app.kinds import kind_of
from muster.app.views.money import CostView
from muster.app.views.pool import message_view, metrics_view, pool_view, slot_view
from muster.domain.errors import Conflict, NotFound
from muster.mcp.answers import compact, picked, short_batch, whole
from muster.mcp.control_inputs import (
    AnswerInput,
    ContextInput,
    ControlInput,
    MessageInput,
    PoolInput,
    ReviewInput,
    SteerInput,
)
from muster.mcp.request import CoordinatorTool, ToolRequest
from muster.mcp.sizes import Answer, Pointer, page, page_of_rows
from muster.mcp.tools.following import find, is_batch
from muster.text.views import plain


async def review_task(request: ToolRequest, given: ReviewInput) -> Answer:
    """Decide about a task that waits for a review, or for a permission."""
    muster, sender = request.muster, request.caller.user.name or ""
    async with request.audited(given.decision, (await muster.pool.tasks.get(given.id)).id):
        match given.decision:
            case "approve":
                task = await muster.pool.tasks.approve(given.id, sender=sender)
            case "reject":
                task = await muster.pool.tasks.reject(
                    given.id, given.feedback, budget_usd=given.budget_usd, sender=sender
                )
            case "allow":
                task = await muster.pool.tasks.allow(given.id, sender=sender)
            case "deny":
                task = await muster.pool.tasks.deny(given.id, given.feedback, sender=sender)
    last = given.decision == "reject" and task.is_rejected_for_good
    effect = {"effect": "rejected as often as it allows: it fails"} if last else {}
    return {"id": task.id, "decision": given.decision, **effect, "next": f"wait(ids=[{task.id!r}])"}


async def answer_question(request: ToolRequest, given: AnswerInput) -> Answer:
    """Answer a question of a run for a person."""
    muster = request.muster
    run = await find(muster, given.id)
    async with request.audited("answer", run.id):
        found = await muster.runs.answer(run.id, given.text, key=given.key, sender=request.caller.user.name or "")
    return {"run": found.sent.run, "key": found.sent.key, "next": f"wait(ids=[{found.root.id!r}])"}


async def steer_council(request: ToolRequest, given: SteerInput) -> Answer:
    """Tell all members of a council something, or end it."""
    muster = request.muster
    if given.action == "stop":
        request.caller.require("start")
    run = await muster.councils.find(given.id)
    async with request.audited(given.action, run.id):
        if given.action == "inject":
            await muster.councils.inject(run.id, given.text)
        else:
            await muster.councils.stop(run.id)
    return {"id": run.id, "action": given.action, "next": f"wait(ids=[{run.id!r}])"}


async def control_run(request: ToolRequest, given: ControlInput) -> Answer:
    """Cancel a task, a run or a batch, or go on with a task or a run."""
    if await is_batch(request.muster, given.id):
        return await _cancel_batch(request, given)
    muster = request.muster
    run = await find(muster, given.id)
    async with request.audited(given.action, run.id) as doing:
        if given.action == "cancel" and kind_of(run).in_slot:
            run = (await muster.pool.cancel(run.id)).run
        elif given.action == "cancel":
            run = await muster.runs.cancel(run.id)
        elif kind_of(run).in_slot:
            run = (await muster.pool.tasks.retry(run.id, budget_usd=given.budget_usd)).run
        else:
            run = await muster.submit_resume(run.id, budget_usd=given.budget_usd)
        doing.subject = run.id
    return await whole(muster, run)


async def _cancel_batch(request: ToolRequest, given: ControlInput) -> Answer:
    request.caller.require("admin")
    if given.action != "cancel":
        raise Conflict("a batch goes on at its provider by itself; resume the runs whose calls it holds")
    muster = request.muster
    batch = await muster.batches.find(given.id)
    async with request.audited("cancel batch", batch.id):
        return short_batch(await muster.batches.cancel(batch))


async def pool(request: ToolRequest, given: PoolInput) -> Answer:
    """Look at the slots, or change its size."""
    muster = request.muster
    match given.action:
        case "metrics":
            return plain(metrics_view(await muster.pool.metrics()))
        case "scale":
            async with request.audited("scale", "pool"):
                await muster.pool.scale(str(given.slots))
        case "drain":
            async with request.audited("drain", "pool"):
                await muster.pool.drain(given.timeout_secs)
    names = (
        "name",
        "role",
        "state",
        "current_task",
        "current_task_name",
        "tasks_completed",
        *CostView.__struct_fields__,
        "error",
    )
    slots = [compact(picked(slot_view(slot), *names)) for slot in await muster.pool.slots()]
    status = plain(pool_view(await muster.pool.status()))
    return compact(status | {"driver": None, "driven": status["driver"] is not None, "slots": slots})


async def messages(request: ToolRequest, given: MessageInput) -> Answer:
    """Send a message to slots, or show what one has not read."""
    muster, sender = request.muster, request.caller.user.name or ""
    if given.action == "unread":
        return await _unread(muster, str(given.slot), given)
    async with request.audited("message", given.slot or "all slots"):
        if given.slot is None:
            return {"sent_to": list(await muster.pool.broadcast(given.text, sender=sender))}
        await muster.pool.send(given.slot, given.text, sender=sender)
    return {"sent_to": [given.slot]}


async def _unread(muster: Muster, slot: str, given: MessageInput) -> Answer:
    """Return a page of the messages that a slot has not read, or one of them in full."""
    unread = [plain(message_view(one)) for one in await muster.pool.unread(slot)]
    if given.key is not None:
        text = next((str(one["text"]) for one in unread if one["id"] == given.key), None)
        if text is None:
            raise NotFound(f"slot {slot!r} has no unread message {given.key}")
        return page(text, given.offset)

    async def rows() -> AsyncIterator[tuple[str, Answer]]:
        for one in unread:
            if one["id"] > given.after:
                yield str(one["id"]), one

    def pointer_of(key: str) -> Pointer:
        return lambda field, offset: f"messages(action='unread', slot={slot!r}, key={key}, offset={offset})"

    kept, last = await page_of_rows(rows(), pointer_of)
    return {"messages": kept, "total": len(unread), "next_after": None if last is None else int(last)}


async def context(request: ToolRequest, given: ContextInput) -> Answer:
    """List, read, set or delete the texts that every slot is told."""
    muster, name = request.muster, str(given.name)
    if given.action == "list":
        return await _texts(await muster.pool.context(), given.after)
    if given.action == "read":
        return page(await muster.pool.context_text(name), given.offset)
    async with request.audited(f"{given.action} context", name):
        if given.action == "set":
            await muster.pool.set_context(name, given.text)
        else:
            await muster.pool.delete_context(name)
    done = {"set": len(given.text)} if given.action == "set" else {"deleted": True}
    return {"name": name, **done, "next": "context(action='list') shows all texts"}


async def _texts(texts: Mapping[str, str], after: str) -> Answer:
    """Return a page of the shared texts, by name."""

    async def rows() -> AsyncIterator[tuple[str, Answer]]:
        for name in sorted(texts):
            if name > after:
                yield name, {"text": texts[name]}

    def pointer_of(key: str) -> Pointer:
        return lambda field, offset: f"context(action='read', name={key!r}, offset={offset})"

    kept, last = await page_of_rows(rows(), pointer_of)
    names = [name for name in sorted(texts) if name > after]
    shown = {name: row["text"] for name, row in zip(names, kept, strict=False)}
    return {"context": shown, "total": len(texts), "next_after": last}


DIRECTING = (
    CoordinatorTool(
        name="review_task",
        description="Decide about a task in state pending_review: approve its work, or reject it with feedback so that "
        "it is done again; allow or deny the tool that it asks permission for.",
        takes=ReviewInput,
        scope="review",
        handle=review_task,
    ),
    CoordinatorTool(
        name="answer_question",
        description="Pass on the user's answer to a question that a run asks a person. Ask the user first. "
        "wait and result show open questions with their keys.",
        takes=AnswerInput,
        scope="review",
        handle=answer_question,
    ),
    CoordinatorTool(
        name="steer_council",
        description="Influence a council while it goes on: tell all members something, or stop it with the best "
        "proposal so far.",
        takes=SteerInput,
        scope="review",
        handle=steer_council,
    ),
    CoordinatorTool(
        name="control_run",
        description="Cancel a task, run or batch, or resume a task or run that failed, was canceled or was "
        "interrupted. Replies that were paid for are reused.",
        takes=ControlInput,
        scope="start",
        handle=control_run,
    ),
    CoordinatorTool(
        name="pool",
        description="Show the slots of the pool and what they do, change how many there are, or drain it.",
        takes=PoolInput,
        scope="admin",
        handle=pool,
    ),
    CoordinatorTool(
        name="messages",
        description="Send a message to the agent of one slot or of all slots: it arrives while they work or with their "
        "next task. Or show what a slot has not read.",
        takes=MessageInput,
        scope="admin",
        handle=messages,
    ),
    CoordinatorTool(
        name="context",
        description="Texts by name that are added to the prompts of every slot from its next task on: conventions, "
        "decisions, facts. List, read, set or delete them.",
        takes=ContextInput,
        scope="admin",
        handle=context,
    ),
)
