"""The proof of the demo: what the provider was paid for, against what the journal knows. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.domain.canonical import digest
from muster.domain.entry import Entry, EntryKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """For every digest: paid ≤ calls + uncertain."""

    digests: int
    paid: int
    calls: int
    uncertain: int
    broken: tuple[str, ...] = ()  # digests for which it does not hold

    @property
    def holds(self) -> bool:
        """Whether nothing was paid twice."""
        return not self.broken and self.digests > 0


def prove(paid: Mapping[str, int], entries: Iterable[Entry], uncertain_keys: Iterable[str], model: str) -> Proof:
    """Compare the audit with the journal, digest by digest."""
    names = {entry.key: _on_the_wire(entry, model) for entry in entries if entry.kind is EntryKind.CALL}
    calls = Counter(names.values())
    uncertain = Counter(names[key] for key in uncertain_keys)
    broken = tuple(name for name, count in paid.items() if count > calls[name] + uncertain[name])
    return Proof(
        digests=len(paid),
        paid=sum(paid.values()),
        calls=calls.total(),
        uncertain=uncertain.total(),
        broken=broken,
    )


def _on_the_wire(entry: Entry, model: str) -> str:
    """Name a call of the demo as the provider's audit does: by the body that it received."""
    request: dict[str, Any] = entry.request
    messages = [{"role": message["role"], "content": message["text"]} for message in request["messages"]]
    return digest({"model": model, "max_tokens": request["max_tokens"], "messages": messages})
