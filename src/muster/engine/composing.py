"""Composing a batch: members are encoded one by one until the provider's limits are reached."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import islice

from muster.agents.base import BatchAgent
from muster.domain.batch import Limits, Member, Names, Plan, Tariff
from muster.domain.call import SHORTEST_CACHED, Request
from muster.domain.errors import CallFailed, InvalidRequest, MusterError
from muster.domain.ids import BatchId
from muster.engine.parking import Parked
from muster.store.base import BatchBook

PIECE_BYTES = 1024 * 1024
FEWEST_SHARERS = 3  # to keep a prefix for an hour costs twice its price, and each other call a tenth: two pay more
BREATH = 256  # members between two moments for the rest of the process


@dataclass(slots=True)
class Composition:
    """A batch as it grows."""

    id: BatchId
    nonce: str
    agent: BatchAgent
    most: Limits
    members: list[Member] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    tariffs: dict[str, Tariff] = field(default_factory=dict)
    refused: list[tuple[Parked, MusterError]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    bytes: int = 0

    def plan(self, at: float) -> Plan:
        """Give the plan as it is to be stored."""
        return Plan(
            id=self.id,
            desk=self.agent.desk,
            nonce=self.nonce,
            tariffs=self.tariffs,
            members=self.members,
            bodies=self.pieces,
            bytes=self.bytes,
            at=at,
        )


async def compose(composition: Composition, lane: deque[Parked], at: float, book: BatchBook) -> Composition:
    """Take calls from the lane, oldest first, until the batch is full."""
    spelling = composition.agent.spelling
    shared, names = shared_prefixes(lane, composition.most.requests), Names(composition.nonce, composition.id)
    piece = bytearray(spelling.head)
    size = len(spelling.head) + len(spelling.tail)
    while lane and len(composition.members) < composition.most.requests:
        place = len(composition.members)
        try:
            book.check(lane[0].attempt.key, lane[0].text)
            line, member = _spell(composition, lane[0], place, names.name(place), at, cached=_marks(lane[0], shared))
        except MusterError as error:
            composition.refused.append((lane.popleft(), error))
            continue
        except Exception as error:  # one that cannot be written must not take its neighbours along
            composition.refused.append((lane.popleft(), CallFailed(f"the request cannot be written: {error!r}")))
            continue
        grown = size + len(line) + (len(spelling.separator) if place else 0)
        if grown > composition.most.bytes:
            if place:
                break
            composition.refused.append((lane.popleft(), _too_large(len(line), composition.most.bytes)))
            continue
        size = grown
        piece += (spelling.separator if place else b"") + line
        _add(composition, lane.popleft(), member)
        if len(piece) >= PIECE_BYTES:
            composition.pieces.append(await book.pack(bytes(piece)))
            piece.clear()
        elif place % BREATH == 0:
            await asyncio.sleep(0)
    composition.pieces.append(await book.pack(bytes(piece) + spelling.tail))
    composition.bytes = size
    return composition


def _spell(
    composition: Composition, parked: Parked, place: int, name: str, at: float, *, cached: bool
) -> tuple[bytes, Member]:
    body = parked.batching.encode(parked.request, cached)
    return composition.agent.spelling.member(name, body), parked.member(place, body, at)


def _add(composition: Composition, parked: Parked, member: Member) -> None:
    composition.members.append(member)
    composition.parked.append(parked)
    composition.tariffs[parked.agent] = parked.batching.tariff


def shared_prefixes(lane: deque[Parked], most: int) -> frozenset[str]:
    """Give the long prefixes that enough of the first calls have in common."""
    counts = Counter(prefix for parked in islice(lane, most) if (prefix := prefix_of(parked.request)) is not None)
    return frozenset(prefix for prefix, count in counts.items() if count >= FEWEST_SHARERS)


def prefix_of(request: Request) -> str | None:
    """Give what stands before that which is asked, if it is long enough to be cached."""
    parts = [repr(request.tools) if request.tools else "", request.system]
    if request.shared:  # another shape of the answer would be another prompt to the provider
        parts += [request.messages[0].text[: request.shared], "" if request.schema is None else repr(request.schema)]
    return "".join(parts) if sum(map(len, parts)) >= SHORTEST_CACHED else None


def _marks(parked: Parked, shared: frozenset[str]) -> bool:
    return parked.cache and bool(shared) and prefix_of(parked.request) in shared


def _too_large(size: int, most: int) -> CallFailed:
    return InvalidRequest(
        f"the request has {size} bytes, and a whole batch may have only {most}",
        suggestions=("make the request shorter", "or send it live"),
    )
