"""Reading: the lines of a page of results become settlements, one member after the other.

What is made of one line is used and let go of before the next is read, so that it is still in the processor's cache.
"""

import math
import shutil
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote, unquote

from muster.agents.base import BatchAgent
from muster.domain.batch import Answered, Batch, BatchMember, Errored, MemberResult, Shortfall
from muster.domain.call import Reply, Timings
from muster.domain.entry import AttemptState, Failed, Replied, Settlement
from muster.domain.errors import BatchCanceled, Expired, OutcomeUnknown, StoreFailed, WireError
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.domain.run import Driver
from muster.engine.batches.dismiss import failure_of, settlement_of
from muster.store.base import ResultPage

T = TypeVar("T")

BUFFER = 32 * 1024
MAX_FILES = 256
MAX_LINES = 3  # of one member: a line that is cut or a stranger's may come before the good one
UNUSED_SECONDS = 86_400.0  # after which a folder whose process cannot be looked at is removed
MAX_LINE = 64 * 1024 * 1024  # bytes; no answer is that long

_NUMBERS = count()


class Spool:
    """The lines of one source of results, in one file for every page of places."""

    def __init__(self, folder: Path, *, places: int, page: int) -> None:
        self._folder = folder
        self._page = max(page, -(-places // MAX_FILES))
        self._files: dict[int, BinaryIO] = {}
        self._places: dict[int, array[int]] = {}  # of the lines of a file, in their order
        self._counts = bytearray(places)  # of the lines of each member
        self.lines = 0

    def begin(self) -> None:
        """Start over with nothing; a download that broke is begun anew."""
        self.clear()
        self._attempt(self._folder.mkdir, mode=0o700, parents=True)

    def add(self, place: int, line: bytes) -> bool:
        """Put a line, with its line break, where its member's neighbours are; False when there are enough of it."""
        if self._counts[place] == MAX_LINES:
            return False
        self._counts[place] += 1
        number = place // self._page
        if number not in self._files:
            self._files[number] = self._attempt(self._open, number)
            self._places[number] = array("l")
        try:
            self._files[number].write(line)
        except OSError as error:
            raise self._failed(error) from error
        self._places[number].append(place)
        self.lines += 1
        return True

    def _open(self, number: int) -> BinaryIO:
        return (self._folder / f"{number}.jsonl").open("wb", BUFFER)

    def _read(self, number: int) -> list[bytes]:
        return BytesIO((self._folder / f"{number}.jsonl").read_bytes()).readlines()

    def finish(self) -> None:
        """Write everything out."""
        for file in self._files.values():
            self._attempt(file.close)

    def pages(self) -> Iterator[tuple[int, int, list[tuple[int, bytes]]]]:
        """Yield the lines with their places, page by page, after the first place of the page and the one after it."""
        found = 0
        for number in sorted(self._files):
            lines = [line for line in self._attempt(self._read, number) if _is_whole(line)]  # else it was cut
            found += len(lines)
            yield number * self._page, (number + 1) * self._page, list(zip(self._places[number], lines, strict=False))
        if found != self.lines:  # what is missing here must not be taken for missing at the provider
            raise StoreFailed(f"{self.lines - found} of {self.lines} spooled results are gone from {self._folder}")

    def clear(self) -> None:
        """Remove all of it."""
        for file in self._files.values():
            file.close()
        self._files, self._places, self.lines = {}, {}, 0
        self._counts = bytearray(len(self._counts))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _attempt(self, work: Callable[..., T], *arguments: object, **options: object) -> T:
        try:
            return work(*arguments, **options)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> StoreFailed:
        return StoreFailed(
            f"results cannot be spooled to {self._folder}: {error.strerror}",
            suggestions=("free some space; the results stay at the provider; then try again",),
        )


def own_folder(spool: Path, driver: Driver, is_gone: Callable[[Driver], bool], now: float) -> Path:
    """Return a folder that no other process writes to, and remove those of processes that are gone."""
    for other in spool.glob("*"):
        owner = _owner(other.name)
        gone = owner is not None and is_gone(owner)
        # Of a process in another PID namespace or on another machine nobody can tell: its age decides.
        if gone or (owner != driver and _last_change(other) < now - UNUSED_SECONDS):
            shutil.rmtree(other, ignore_errors=True)
    parts = (driver.host, str(driver.pid), driver.started, str(next(_NUMBERS)))
    return spool / "+".join(quote(part, safe="") for part in parts)


def _owner(name: str) -> Driver | None:
    """Read the name of a folder; None when an older version gave it."""
    parts = [unquote(part) for part in name.split("+")]
    if len(parts) != 4 or not parts[1].isdecimal():
        return None
    return Driver(host=parts[0], pid=int(parts[1]), started=parts[2])


def _last_change(folder: Path) -> float:
    """Return when a folder or a file in it was last written to; never for one that is being removed."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return math.inf


class Splitter:
    """Cuts a stream of bytes into lines, which keep their line breaks."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a line that has not ended
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that are whole by now."""
        if self._size > MAX_LINE:  # its end is left out, so that what is kept of it cannot be read
            chunk = chunk[chunk.find(b"\n") :] if b"\n" in chunk else b""
        lines = BytesIO(chunk).readlines()  # `split` looks at every byte in turn, and takes six times as long
        if lines and self._parts:
            self._keep(lines[0])
            if not _is_whole(lines[0]):
                return []
            lines[0] = b"".join(self._parts)
            self._parts, self._size = [], 0
        if lines and not _is_whole(lines[-1]):
            self._keep(lines.pop())
        return lines

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)

    def rest(self) -> bytes:
        """Return what came after the last line break, as a line."""
        return b"".join((*self._parts, b"\n"))


def _is_whole(line: bytes) -> bool:
    return line.endswith(b"\n")


MAX_KEPT_LINES = 100  # lines that are kept
MAX_BYTES = 100_000  # of each


@dataclass(slots=True)
class OddLines:
    """What was strange about the lines of one source."""

    unreadable: int = 0
    unknown: int = 0
    duplicates: int = 0
    cut: bool = False  # the connection broke before the end
    endless: int = 0  # bytes that were received when the rest was left unread
    answered: int = 0  # not strange: members with an answer
    failed: int = 0  # nor this: members that were not answered
    names: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)

    def keep(self, line: bytes, name: str | None = None) -> None:
        """Keep a line that belongs to no member."""
        self.unreadable += name is None
        self.unknown += name is not None
        if len(self.lines) < MAX_KEPT_LINES:
            self.lines.append(line if len(line) <= MAX_BYTES else line[:MAX_BYTES] + b"\n")
            self.names += [] if name is None else [name[:80]]

    def __str__(self) -> str:
        shown = f" ({', '.join(self.names[:3])})" if self.names else ""
        return (
            f"{self.unreadable} lines of the results cannot be read, {self.unknown} have unknown ids{shown}, "
            f"{self.duplicates} are duplicates"
            + (f"; the rest after {self.endless} bytes was not read: the results are too large" if self.endless else "")
        )

    def __bool__(self) -> bool:
        return bool(self.unreadable or self.unknown or self.duplicates or self.endless)


Ended = Reply | WireError

_BY_PLACE: Callable[[tuple[int, bytes]], int] = itemgetter(0)
_PARKED = AttemptState.PARKED
_ENDED_AS = {Expired: AttemptState.EXPIRED, BatchCanceled: AttemptState.CANCELED}


class ResultReader:
    """Reads one page: the lines that were used, and the outcomes that are awaited, are there afterwards."""

    def __init__(self, agent: BatchAgent, batch: Batch, *, wanted: Container[int], odd: OddLines) -> None:
        self._format, self._batch, self._names = agent.format, batch, batch.names
        self._wanted, self._odd = wanted, odd
        self._timings = Timings(waited=batch.seconds)  # parked: no clock of a call or a case goes on
        self.lines: list[bytes] = []
        self.outcomes: list[tuple[int, Ended]] = []

    def page(self, lines: Sequence[tuple[int, bytes]], members: Iterable[BatchMember], at: float) -> ResultPage:
        """Return the page, which is read when its settlements are gone through."""
        settlements = self._settlements(lines, {member.place: member for member in members}, at)
        return ResultPage(batch=self._batch.id, settlements=settlements, lines=self.lines, at=at)

    def _settlements(
        self, lines: Sequence[tuple[int, bytes]], members: Mapping[int, BatchMember], at: float
    ) -> Iterator[Settlement]:
        """Settle the members that are still parked, about in their order; the first good line of each counts."""
        read: set[int] = set()
        for glanced, line in sorted(lines, key=_BY_PLACE):
            found = self._read(glanced, line, members)
            if found is None:
                continue
            place, result = found
            if place in read:
                self._odd.duplicates += 1
                continue
            member = members.get(place)
            parked = member is not None and member.state is _PARKED
            outcome = self._outcome(member, result) if member is not None and parked else None
            if isinstance(outcome, OutcomeUnknown):
                self._odd.keep(line)  # its member stays parked: the next download may have the answer
                continue
            read.add(place)
            self._odd.answered += isinstance(result, Answered)
            self._odd.failed += not isinstance(result, Answered)
            if member is not None and outcome is not None:
                self.lines.append(line)
                if place in self._wanted:
                    self.outcomes.append((place, outcome))
                yield self._settlement(member, outcome, at)

    def _read(self, glanced: int, line: bytes, members: Mapping[int, BatchMember]) -> tuple[int, MemberResult] | None:
        """Read a line; whose it is says its name, and not what was seen of it at a glance."""
        read = self._format.read(line)
        if read is None:
            self._odd.keep(line)
            return None
        name, result = read
        if name == self._names.name(glanced):
            return glanced, result
        place = self._names.place(name)
        if place is None or place not in members:
            self._odd.keep(line, name)
            return None
        return place, result

    def _outcome(self, member: BatchMember, result: MemberResult) -> Ended:
        if isinstance(result, Answered):
            return self._answer(member, result)
        if isinstance(result, Errored):
            return result.error
        return _dropped(self._batch, result.why)

    def _answer(self, member: BatchMember, result: Answered) -> Ended:
        tariff, n = self._batch.tariffs[member.agent], member.attempt.n
        try:
            reply = self._format.decode(result.answer, tariff, member.size, member.max_tokens, self._timings)
        except WireError as error:
            return error
        booked = reply.booked(member.reserved)
        return booked if n == 1 else booked.finished(n, self._timings.waited, 0.0)

    def _settlement(self, member: BatchMember, outcome: Ended, at: float) -> Settlement:
        if isinstance(outcome, WireError):
            failed, _ = failure_of(outcome, _ENDED_AS.get(type(outcome), AttemptState.FAILED))
            return settlement_of(member, failed, at)
        return Settlement(
            member.attempt,
            Replied(outcome),
            member.reserved,
            member.levels,
            at,
            live_cost=self._live_cost(member, outcome),
            position=member.position,
        )

    def _live_cost(self, member: BatchMember, reply: Reply) -> Microdollars:
        """Return what a live call would have cost; nothing where the cost is uncertain, as it is not compared."""
        live = self._batch.tariffs[member.agent].live
        return NOTHING if live is None or reply.lane is Lane.UNCERTAIN else live.cost(reply.usage)


def missing(batch: Batch, shortfall: Shortfall) -> tuple[Failed, WireError]:
    """Return how a member ends that has no line in the results."""
    if shortfall is not Shortfall.NONE:
        error = _dropped(batch, shortfall)
        return failure_of(error, _ENDED_AS[type(error)])
    return failure_of(OutcomeUnknown(f"batch {batch.id} ended and gave no result for this call"))


def _dropped(batch: Batch, why: Shortfall) -> WireError:
    """Return the error for a member that its batch did not process."""
    if why is Shortfall.EXPIRED:
        return Expired(f"batch {batch.id} expired before it processed this call")
    return BatchCanceled(f"batch {batch.id} was canceled before it processed this call")
