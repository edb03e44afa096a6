"""Which keys a workload asks for: what is stored under others is lost to it, and may be done and paid once more.

Keys that differ when a run is resumed, such as those made with a random number, the time or the order of a set, are
found at its end: something stored was asked for by nobody, and the like of it was done anew under another key. What a
workload has no use for any more is no such thing: who lost a race, what a changed code leaves out. Muster's own
workloads are not looked at: what failed they do again on purpose, under the key of another try.
"""

from collections.abc import Sequence

from muster.domain.entry import EntryKind, UnusedEntries
from muster.store.base import DoneEntry

KINDS = frozenset({EntryKind.CALL, EntryKind.STEP, EntryKind.CHILD})
MAX_KEYS = 100  # that an event names


class AskedKeys:
    """The keys that one driver of a run asks for, if they are wanted: nobody drove most runs before."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._asked: set[str] = set()
        self.anew: set[str] = set()  # under which nothing was stored

    def note(self, key: object) -> None:
        """Note that a key was asked for, also if nobody waits for what it gives."""
        if self._wanted and isinstance(key, str):
            self._asked.add(key)

    def note_missing(self, key: str) -> None:
        """Note that nothing is stored under a key, neither here nor where this run comes from."""
        if self._wanted:
            self.anew.add(key)

    def __contains__(self, key: str) -> bool:
        return key in self._asked


def unused_entries(asked: AskedKeys, own: Sequence[DoneEntry], inherited: Sequence[DoneEntry]) -> UnusedEntries | None:
    """Return what a completed run has no use for, of what it and those that it comes from had stored.

    Steps of other runs are left out: a workload may well do some of them in each run anew, and say so by their keys.
    """
    anew = {(entry.kind, entry.digest) for entry in own if entry.key in asked.anew and entry.kind in KINDS}
    kinds = {kind for kind, _ in anew}
    unused = {
        entry.key: (entry.kind, entry.digest) in anew
        for entry in (*own, *(entry for entry in inherited if entry.kind is not EntryKind.STEP))
        if entry.kind in kinds and entry.key not in asked
    }
    if not unused:
        return None
    return UnusedEntries(keys=tuple(unused)[:MAX_KEYS], total=len(unused), repeated=sum(unused.values()))
