"""What a terminal says of a task: where its work is, and which other tasks changed the same files."""

from collections.abc import Mapping
from typing import Any

from muster.app.pool.task_queries import Task
from muster.app.pool.trees import OverlapReport, TaskOverlap
from muster.domain.task import TaskState
from muster.text.secrets.redaction import redact
from muster.text.words import count


def work_text(task: Task) -> str:
    """Return where the work of a task is, in one line; empty for one that has no tree of its own."""
    if task.summary:
        return task.summary + (f"; merged into {task.merged_into}" if task.merged_into else "")
    if task.branch is None:
        return ""
    return f"{task.branch}: nothing is saved yet; it works in {task.tree.get('path')}"


def change_lines(task: Task) -> list[str]:
    """Return what changed in the user's repository while a task was at work, with the commands that restore it."""
    return repository_lines(f"task {task.title}", task.saved)


def repository_lines(who: str, found: Mapping[str, Any]) -> list[str]:
    """Return what changed in the user's repository while somebody worked; or why that is not known."""
    lines: list[str] = []
    if changes := found.get("repository_changes"):
        lines.append(f"while {who} worked, this changed in your repository, by it, by you or by another task:")
    for one in changes or ():
        how = f"; restore it with: {one['restore']}" if one["restore"] else ""
        lines.append(f"  {one['what']}: {one['before'] or 'nothing'} became {one['after'] or 'nothing'}{how}")
    if unknown := found.get("repository_unknown"):
        lines.append(f"what changed in your repository while {who} worked is not known: {unknown}")
    return lines


def notice_lines(task: Task) -> list[str]:
    """Return what a user must know of a task: work that it did not get, and what changed in the user's repository."""
    return [*_handover_lines(task), *change_lines(task)]


def _handover_lines(task: Task) -> list[str]:
    lines: list[str] = []
    for earlier in task.handed_over:
        if earlier.missing:
            what = "; ".join(earlier.missing)
            lines.append(f"task {task.title} did not get this from task {earlier.title}: {what}")
    return lines


def has_work(task: Task) -> bool:
    """Return whether a task has left anything, on its branch or beside it."""
    return bool(task.saved.get("changed") or task.saved.get("commits") or has_asides(task))


def has_asides(task: Task) -> bool:
    """Return whether there is work of a task beside its branch."""
    return any(task.saved.get(name) for name in ("other_branches", "nested", "unsaved", "operation"))


def work_cell(task: Task) -> str:
    """Return how much a task has changed, for a column; what lies beside its branch is marked by a plus."""
    changed = task.saved.get("changed")
    if changed is None:
        return ""
    merged = ", merged" if task.merged_into else ""
    files = count(changed, "file") if changed or not has_asides(task) else ""
    return files + ("+" if has_asides(task) else "") + merged


def work_commands(task: Task) -> str:
    """Return the commands that show and take the work of a task."""
    if not has_work(task):
        return ""
    known = [f"muster task diff {task.id}"] if task.saved.get("changed") else []
    is_done = task.state in (TaskState.COMPLETED, TaskState.PENDING_REVIEW)
    if is_done and task.saved.get("commits") and not task.merged_into:
        known.append(f"muster task merge {task.id}")
    known += [f"git diff {task.base} {other}" for other in task.saved.get("other_branches", ())]
    return ", ".join(known)


def overlap_lines(found: OverlapReport, task: str | None = None) -> list[str]:
    """Return the files that several tasks changed, in lines; of one task, with the others."""
    lines = [_overlap_words(one, task, found.names) for one in found.overlaps]
    if found.left_out:
        lines.append(f"{count(found.left_out, 'older task')} {'was' if found.left_out == 1 else 'were'} not compared")
    if found.obstacle:
        lines.append(f"whether other tasks changed the same files is not known: {found.obstacle}")
    return lines


def _overlap_words(one: TaskOverlap, task: str | None, names: Mapping[str, str]) -> str:
    def title(other: str) -> str:
        return f"{other} ({names[other]})" if other in names else other

    conflicts = [pair for pair in one.conflicts if task is None or task in pair]
    others = [title(other) for other in one.tasks if other != task]
    if not conflicts:
        same = "" if one.examined else "; whether in the same lines is not known"
    else:
        pairs = (" and ".join(title(other) for other in pair if other != task) for pair in conflicts)
        same = f"; in the same lines: {', '.join(pairs)}"
    too = "is also changed by" if task else "is changed by"
    return f"{redact(one.path).text} {too} {', '.join(others)}{same}"
