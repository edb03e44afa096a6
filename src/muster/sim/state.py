"""The state of a rehearsal server in a file: what was paid, the prompt cache, batches and files.

Only what happened is kept. Script, faults, latency and how long batches take are options of the server that goes on:
a batch ends as many milliseconds after its creation as that server is told, and faults begin from their beginning.
"""

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from muster.domain.canonical import Json
from muster.domain.errors import BadFile
from muster.sim.batches.anthropic import MessageBatches
from muster.sim.batches.batch import MemberOutcome, SimBatch, SimBatchMember, Wording
from muster.sim.batches.openai import ENDPOINT
from muster.sim.batches.openai import WORDINGS as OPENAI_WORDINGS
from muster.sim.batches.registry import BatchRegistry, File
from muster.sim.rehearsal import Rehearsal
from muster.text import typed

VERSION = 1
ENCODING = "latin-1"  # of lines: whatever bytes they are, a fault may have cut them in a character

_MESSAGES = MessageBatches()


class _SavedBatch(typed.Struct, kw_only=True):
    id: str
    account: str
    provider: str
    created: float
    size: int
    done: int
    settled: float
    closed: bool
    filed: bool
    listed: bool  # its owner has not deleted it
    canceled: float | None
    about: dict[str, Json]
    problems: list[Json]
    counts: dict[MemberOutcome, int]
    models: list[str]
    members: list[tuple[str, typed.Raw]]
    output: list[str]
    errors: list[str]


class _File(typed.Struct, kw_only=True):
    id: str
    account: str
    name: str
    purpose: str
    created: float
    batch: str | None  # whose output or errors it is; the lines are then the batch's own
    lines: list[str]


class _State(typed.Struct, kw_only=True):
    version: int
    numbers: dict[str, int]  # the next of each
    book: dict[str, dict[str, int]]
    cache: list[str]
    batches: list[_SavedBatch]
    files: list[_File]


def save(rehearsal: Rehearsal, path: Path) -> None:
    """Write the state of a server that has ended."""
    registry = rehearsal.registry
    state = _State(
        version=VERSION,
        numbers={name: next(numbers) for name, numbers in _counters(rehearsal).items()},
        book=rehearsal.book.kept(),
        cache=sorted(prefix.hex() for prefix in rehearsal.responder.cache.seen),
        batches=[_kept_batch(registry, batch) for batch in registry.batches],
        files=[_kept_file(account, file) for account, file in registry.files.all()],
    )
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.write_bytes(typed.format_json(typed.encode(state), indent=1) + b"\n")
        new.replace(path)  # the old state or the new one, never half of it
    except OSError as error:
        raise BadFile(str(path), f"cannot be written: {error.strerror}") from None


def load(rehearsal: Rehearsal, path: Path) -> None:
    """Go on from the state in a file; a file that does not exist yet is an empty state."""
    try:
        state = typed.Decoder(_State).decode(path.read_bytes())
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from None
    except (typed.DecodeError, UnicodeDecodeError) as error:
        raise BadFile(str(path), f"is not the state of a rehearsal server: {error}") from None
    if state.version != VERSION:
        raise BadFile(str(path), f"has version {state.version} of the state; this program reads version {VERSION}")
    for name, numbers in _counters(rehearsal).items():
        deque(islice(numbers, state.numbers[name] - 1), maxlen=0)
    rehearsal.book.restore(state.book)
    rehearsal.responder.cache.seen.update(bytes.fromhex(prefix) for prefix in state.cache)
    for kept in state.batches:
        rehearsal.registry.put(_batch(rehearsal.registry, kept), listed=kept.listed)
    batches = {batch.id: batch for batch in rehearsal.registry.batches}
    for file in state.files:
        rehearsal.registry.files.put(file.account, _file(file, batches))


def _counters(rehearsal: Rehearsal) -> dict[str, Iterator[int]]:
    registry = rehearsal.registry
    return {"request": rehearsal.numbers, "batch": registry.numbers, "file": registry.file_numbers}


def _kept_batch(registry: BatchRegistry, batch: SimBatch) -> _SavedBatch:
    return _SavedBatch(
        id=batch.id,
        account=batch.account,
        provider=batch.wording.provider,
        created=batch.schedule.created,
        size=batch.size,
        done=batch.done,
        settled=batch.settled,
        closed=batch.closed,
        filed=batch.filed,
        listed=registry.find(batch.wording, batch.account, batch.id) is not None,
        canceled=batch.canceled,
        about=dict(batch.about),
        problems=list(batch.problems),
        counts=dict(batch.counts),
        models=sorted(batch.models),
        members=[(member.custom_id, member.body) for member in batch.members],
        output=[line.decode(ENCODING) for line in batch.output],
        errors=[line.decode(ENCODING) for line in batch.errors],
    )


def _batch(registry: BatchRegistry, kept: _SavedBatch) -> SimBatch:
    batch = SimBatch(
        id=kept.id,
        account=kept.account,
        wording=_wording(kept),
        schedule=registry.schedule(kept.created),
        members=[SimBatchMember(custom_id, body) for custom_id, body in kept.members],
        about=kept.about,
        problems=tuple(kept.problems),
        done=kept.done,
        closed=kept.closed,
        filed=kept.filed,
        canceled=kept.canceled,
        counts=Counter(kept.counts),
        models=set(kept.models),
        output=[line.encode(ENCODING) for line in kept.output],
        errors=[line.encode(ENCODING) for line in kept.errors],
    )
    batch.size, batch.settled = kept.size, kept.settled
    return batch


def _wording(kept: _SavedBatch) -> Wording:
    """Return the words of a batch: of OpenAI's those of its endpoint."""
    if kept.provider == _MESSAGES.provider:
        return _MESSAGES
    return OPENAI_WORDINGS[str(kept.about.get("endpoint", ENDPOINT))]


def _kept_file(account: str, file: File) -> _File:
    return _File(
        id=file.id,
        account=account,
        name=file.name,
        purpose=file.purpose,
        created=file.created,
        batch=None if file.batch is None else file.batch.id,
        lines=[] if file.batch is not None else [line.decode(ENCODING) for line in file.lines],
    )


def _file(kept: _File, batches: Mapping[str, SimBatch]) -> File:
    batch = None if kept.batch is None else batches[kept.batch]
    lines = [line.encode(ENCODING) for line in kept.lines]
    if batch is not None:
        lines = batch.errors if kept.id.endswith("-errors") else batch.output
    return File(id=kept.id, name=kept.name, purpose=kept.purpose, created=kept.created, lines=lines, batch=batch)
