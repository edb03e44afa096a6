"""Which cases of a suite are meant."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from muster.domain.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a case must be like to be taken; everything that is said must hold."""

    filter: str | None = None  # a glob on the id, or on what comes after its first slash
    tags: tuple[str, ...] = ()  # any of them
    only: frozenset[str] | None = None  # ids

    def takes(self, case: Case) -> bool:
        """Say whether a case is meant."""
        if self.only is not None and case.id not in self.only:
            return False
        if self.tags and not set(self.tags) & set(case.tags):
            return False
        if self.filter is None:
            return True
        return any(fnmatchcase(name, self.filter) for name in (case.id, case.id.partition("/")[2]))
