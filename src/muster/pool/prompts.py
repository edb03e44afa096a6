"""What an agent in a slot is told: who it is, what all slots share, its messages, its task and every feedback. Pure."""

from collections.abc import Sequence

from muster.domain.call import Message, Request, Role
from muster.domain.canonical import Json
from muster.domain.entry import Signal
from muster.pool.handover import Handover
from muster.pool.tasks import AssignedSlot, TaskSpec


def request_for(
    task: TaskSpec,
    slot: AssignedSlot,
    *,
    feedback: Sequence[str],
    mail: Sequence[Signal],
    folder: str,
    session: str | None,
) -> Request:
    """Return the request of one round of a task, as the slot recorded for it has it."""
    volatile: dict[str, Json] = {"cwd": folder, "environment": dict(slot.environment)}
    if session:
        volatile["session"] = session
    return Request(
        messages=(Message(role=Role.USER, text=prompt_of(task, feedback, mail, slot.after)),),
        system=system_of(task, slot),
        schema=task.schema,
        settings=dict(slot.settings) or None,
        volatile=volatile,
    )


def system_of(task: TaskSpec, slot: AssignedSlot) -> str:
    """Return the system prompt: identity, what pool, slot and task say, and the shared context in a stable order."""
    who = f"You are {slot.name}" + (f", {slot.role}" if slot.role else "") + ", one of several agents."
    parts = [who, slot.description, *slot.system, task.system]
    parts += [f"# {name}\n{text}" for name, text in sorted(slot.context.items())]
    return "\n\n".join(part for part in parts if part)


def prompt_of(task: TaskSpec, feedback: Sequence[str], mail: Sequence[Signal], after: Sequence[Handover] = ()) -> str:
    """Return the prompt: the task, what those came to on which it depends, every feedback so far, and messages."""
    parts = [task.prompt, *(_result_text(earlier) for earlier in after)]
    parts += [f"Your work was reviewed and rejected ({number}):\n{text}" for number, text in enumerate(feedback, 1)]
    if feedback:
        parts.append("Do the task again and take every review into account.")
    parts += [message_text(one) for one in mail]
    return "\n\n".join(parts)


def _result_text(earlier: Handover) -> str:
    """Return what a task came to as one that depends on it reads it."""
    work = f"Its changes, from the branch {earlier.branch}, are in your working tree." if earlier.head else ""
    missing = f"Not in your working tree: {'; '.join(earlier.missing)}." if earlier.missing else ""
    told = [f"Result of task {earlier.title}, which was done before yours:", earlier.output, work, missing]
    return "\n".join(part for part in told if part)


def message_text(message: Signal) -> str:
    """Return a message as an agent reads it."""
    return f"Message from {message.sender or 'the operator'}:\n{message.payload}"
