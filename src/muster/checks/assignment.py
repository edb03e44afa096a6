"""Who gets what, when everybody can be given one of several things and each thing is given once."""

from collections.abc import Sequence


def first_left_out(wishes: Sequence[Sequence[int]]) -> int | None:
    """Give the first whose wishes cannot be granted together with all before it; None when everybody gets one."""
    holders: dict[int, int] = {}
    things: dict[int, int] = {}
    for person in range(len(wishes)):
        if not _grant(person, wishes, holders, things):
            return person
    return None


def _grant(person: int, wishes: Sequence[Sequence[int]], holders: dict[int, int], things: dict[int, int]) -> bool:
    """Find one more a thing, moving others to another of their wishes where needed."""
    asked_by: dict[int, int] = {}
    waiting = [person]
    for someone in waiting:  # grows while it is gone through
        for thing in wishes[someone]:
            if thing in asked_by:
                continue
            asked_by[thing] = someone
            if thing not in holders:
                _hand_over(thing, person, asked_by, holders, things)
                return True
            waiting.append(holders[thing])
    return False


def _hand_over(
    thing: int, person: int, asked_by: dict[int, int], holders: dict[int, int], things: dict[int, int]
) -> None:
    while True:
        someone = asked_by[thing]
        before = things.get(someone)
        holders[thing], things[someone] = someone, thing
        if someone == person or before is None:
            return
        thing = before
