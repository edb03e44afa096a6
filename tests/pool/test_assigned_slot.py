"""The slot that a task was given, as its journal keeps it."""

import pytest

from muster.domain.errors import BadArgument
from muster.domain.isolation import Isolation
from muster.pool.handover import Handover
from muster.pool.tasks import AssignedSlot, read_slot

EARLIEST = {
    "id": "slot-1",
    "name": "coder",
    "role": "",
    "description": "",
    "agent": "a",
    "system": ["Be brief."],
    "settings": {"budget_usd": 1.5, "tools": ["Bash"]},
    "context": {"rules": "None."},
    "environment": {"MUSTER_HOME": "/home/slots/slot-1"},
    "folder": "/project",
    "isolation": "worktree",
    "task": "1",
    "tree": "task-1",
    "base_dir": None,
    "copy": [".env"],
    "git_environment": {},
}


def test_what_is_kept_is_read_as_the_same() -> None:
    slot = AssignedSlot(
        id="slot-1",
        name="coder",
        agent="a",
        folder="/project",
        isolation=Isolation.CLONE,
        after=(Handover(task="1", name="plan", head="c0ffee", branch="muster/task-1", missing=("a file",)),),
        setup=(("make", "all"),),
    )
    assert read_slot(slot.stored()) == slot


def test_a_journal_without_what_was_added_later_is_read() -> None:
    slot = read_slot({**EARLIEST, "after": [{"task": "2", "name": None, "output": "done", "missing": []}]})
    assert (slot.isolation, slot.copy, slot.setup, slot.ref) == (Isolation.WORKTREE, (".env",), (), None)
    assert slot.after == (Handover(task="2", output="done"),)


@pytest.mark.parametrize(
    ("isolation", "compares", "expected"),
    [("none", None, False), ("none", True, True), ("worktree", None, True), ("worktree", False, False)],
)
def test_the_repository_is_compared_as_it_is_kept_or_where_there_is_a_tree(
    isolation: str, compares: bool | None, expected: bool
) -> None:
    assert read_slot({**EARLIEST, "isolation": isolation, "compares": compares}).is_compared is expected


@pytest.mark.parametrize("kept", [[], {**EARLIEST, "folder": 1}, {"id": "slot-1"}])
def test_what_is_no_slot_is_refused(kept: object) -> None:
    with pytest.raises(BadArgument, match="not a valid slot of a task"):
        read_slot(kept)
