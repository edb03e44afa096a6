"""What the settings say of the pool: its slots, `slot-1` and so on, and where tasks have their working trees."""

from pathlib import Path

from muster.domain.errors import NotFound
from muster.domain.ids import RunId
from muster.git.worktrees import Worktrees
from muster.pool.isolation import GIT_VARIABLES
from muster.pool.tasks import SLOT_KEY, AssignedSlot, SlotProfile, read_slot
from muster.settings import Settings
from muster.store.base import Journal


class SlotDirectory:
    """Finds slots by their names and ids."""

    def __init__(self, settings: Settings) -> None:
        self._declared, self._most = settings.slots, settings.pool.max_slots

    def at(self, place: int) -> SlotProfile:
        """Return the slot at a place, counted from one."""
        id_ = f"slot-{place}"
        if place > len(self._declared):
            return SlotProfile(id=id_, name=id_)
        section = self._declared[place - 1]
        return SlotProfile(
            id=id_,
            name=section.name,
            role=section.role,
            description=section.description,
            agent=section.agent,
            system=section.system,
            tags=section.tags,
            settings=section.settings,
            on_permission=section.on_permission,
        )

    def find(self, name: str) -> SlotProfile:
        """Return the slot with a name or id; raises NotFound."""
        for place in range(1, max(self._most, len(self._declared)) + 1):
            slot = self.at(place)
            if name in (slot.name, slot.id):
                return slot
        raise NotFound(f"slot {name!r} not found", suggestions=("muster pool slots",), given=name)


def profiles(settings: Settings) -> tuple[SlotProfile, ...]:
    """Return every slot that the pool can have."""
    directory = SlotDirectory(settings)
    return tuple(directory.at(place) for place in range(1, settings.pool.max_slots + 1))


async def assigned_slot(journal: Journal, run: RunId) -> AssignedSlot | None:
    """Return the slot that the task of a run was given; None for one that has none yet."""
    entry = await journal.find(run, SLOT_KEY)
    return None if entry is None or entry.value is None else read_slot(entry.value)


def base_dir(settings: Settings) -> Path | None:
    """Return where the working trees of tasks lie; None: at the usual place in their repository."""
    base = settings.pool.worktree_base_dir
    return None if base is None else (settings.folder / base).absolute()


def git_environment(settings: Settings) -> dict[str, str]:
    """Return the variables of git for work in the trees of tasks."""
    return {name: settings.variables[name] for name in GIT_VARIABLES if name in settings.variables}


def project_trees(settings: Settings) -> Worktrees:
    """Return the working trees of the project's repository."""
    return Worktrees(settings.folder, base_dir(settings), environment=git_environment(settings))
