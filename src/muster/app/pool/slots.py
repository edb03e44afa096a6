"""The slots that the settings declare: `slot-1` and so on, those of `[[slots]]` first."""

from muster.domain.errors import NotFound
from muster.pool.tasks import SlotProfile
from muster.settings import Settings


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
        )

    def find(self, name: str) -> SlotProfile:
        """Return the slot with a name or id; raises NotFound."""
        for place in range(1, max(self._most, len(self._declared)) + 1):
            slot = self.at(place)
            if name in (slot.name, slot.id):
                return slot
        raise NotFound(f"slot {name!r} not found", suggestions=("muster pool slots",))


def profiles(settings: Settings) -> tuple[SlotProfile, ...]:
    """Return every slot that the pool can have."""
    directory = SlotDirectory(settings)
    return tuple(directory.at(place) for place in range(1, settings.pool.max_slots + 1))
