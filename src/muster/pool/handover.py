"""What a task hands over to those that depend on it: the commit with its work, and what is not in that commit. Pure.

Work is handed over where there is no doubt about it: what is on the branch of the task, or all that it left if that is
on one other branch. The rest is told, with where it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.domain.canonical import Json

_MAX_NAMED = 10  # paths


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedWork:
    """A task on which another depends, as it ended."""

    task: str  # its id
    name: str | None
    output: str
    saved: Mapping[str, Any]  # what its branch held
    folder: str = ""  # of its tree, or where it worked without one
    has_tree: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What a task hands over to one that depends on it."""

    task: str  # its id
    name: str | None = None
    output: str = ""
    head: str | None = None  # the commit with its work that is handed over, and the branch which holds it
    branch: str | None = None
    missing: tuple[str, ...] = ()  # what there is of its work beside that branch

    @property
    def title(self) -> str:
        """The id of the task, with its name where it has one."""
        return f"{self.task} ({self.name})" if self.name else self.task


def handed_over(work: FinishedWork, *, into_tree: bool) -> Handover:
    """Return what a task hands over to one that depends on it; `into_tree`: the tree of that one begins with it."""
    saved = work.saved
    commit = saved.get("handover", saved.get("head") if saved.get("commits") else None)
    branch = None if commit is None or not into_tree else _branch_of(saved)
    return Handover(
        task=work.task,
        name=work.name,
        output=work.output,
        head=None if branch is None else commit,
        branch=branch,
        missing=tuple(_missing(work, branch, into_tree=into_tree)),
    )


def _branch_of(saved: Mapping[str, Any]) -> str:
    """Return the branch that holds the commit which is handed over."""
    return str(saved["branch"] if saved["commits"] else saved["other_branches"][0])


def _missing(work: FinishedWork, handed: str | None, *, into_tree: bool) -> Iterator[str]:
    """Yield what there is of the work of a task beside the branch that is handed over."""
    saved = work.saved
    if not work.has_tree:
        if into_tree and work.folder:
            yield f"what it changed in {work.folder} and did not commit"
        return
    if saved.get("commits") and handed != saved["branch"]:
        yield _on_branch(saved, saved["branch"])
    yield from beside(saved, work.folder, handed)


def beside(saved: Mapping[str, Any], folder: str, handed: str | None = None) -> Iterator[str]:
    """Yield what a task left beside its branch and the one that is handed over, with where it is."""
    for branch in saved.get("other_branches", ()):
        if branch != handed:
            yield _on_branch(saved, branch)
    if nested := saved.get("nested"):
        yield f"git repositories inside of {folder}, which no commit holds: {', '.join(nested[:_MAX_NAMED])}"
    if unsaved := saved.get("unsaved"):
        yield f"files of {folder} that were written while they were saved: {', '.join(unsaved[:_MAX_NAMED])}"
    if operation := saved.get("operation"):
        yield f"a {operation} that it did not finish in {folder}"


def _on_branch(saved: Mapping[str, Json], branch: str) -> str:
    return f"work on the branch {branch}, which git diff {saved['base']} {branch} shows"
