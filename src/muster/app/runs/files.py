"""A stored run as a file: written by export, read by import, good for replay on any machine."""

import gzip
import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from muster.domain.batch import OVER, Batch, BatchMember
from muster.domain.canonical import Json
from muster.domain.entry import Entry
from muster.domain.errors import BadArgument, BadFile, Conflict, NotFound, StoreFailed
from muster.domain.exchange import PIECE_TYPE
from muster.domain.ids import RunId
from muster.domain.media import MediaFile, MediaKind, digest_of
from muster.domain.rules import FIRST_RULES
from muster.domain.run import DRIVEN, Run, RunState
from muster.reporting.files import require_folder
from muster.store.base import Store
from muster.store.sqlite.store import open_sqlite
from muster.text import typed
from muster.text.json_documents import json_fault
from muster.text.media import TYPES

FORMAT = 1
PAGE = 500
ENDPOINT = "desk"  # how the endpoint of a batch is called in the files
OF_THE_STORE = frozenset(
    {"by_hand", "grace_until", "stalled", "waits_for", "uploads", "unattended"}
)  # what another one finds out anew


async def export_run(store: Store, run: Run, path: Path) -> int:
    """Write a run with its children and all their entries; returns the number of entries."""
    if run.state in DRIVEN and run.lease.driver is not None:
        raise Conflict(f"run {run.id} is being executed by {run.lease.driver}; wait for it or cancel it first")
    _require_file(path)
    unfinished = path.with_name(path.name + ".part")
    written = 0
    seal = hashlib.sha256()
    try:
        unfinished.touch(mode=0o600)  # prompts and answers are private
        with _open(unfinished, path.suffix, "wb") as file:
            async for line in _lines(store, run):
                seal.update(line)
                file.write(line)
                written += line.startswith(b'{"entry"')
            file.write(_line({"end": {"entries": written, "sha256": seal.hexdigest()}}))
        unfinished.replace(path)
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return written


def _require_file(path: Path) -> None:
    """Refuse to replace what is no plain file: a link, a device, a pipe; the folder is made."""
    if path.name in ("", "-") or path.is_symlink() or (path.exists() and not path.is_file()):
        raise BadArgument(f"{path} is not a regular file", suggestions=("name a new file",))
    require_folder(path.parent, path)


async def _lines(store: Store, run: Run) -> AsyncIterator[bytes]:
    yield _line({"muster": FORMAT, "run": run.id})
    waiting, seen = [run], set[RunId]()
    while waiting:
        current = waiting.pop(0)
        if current.id in seen:
            continue
        seen.add(current.id)
        yield _line({"run": _run_json(current)})
        async for entry in store.archive.entries(current.id):
            yield _line({"entry": _entry_json(entry)})
        for digest, type_ in await store.media.named(current.id):
            yield _line({"media": _media_json(digest, type_, await store.media.read(digest))})
        async for batch, members in _batches(store, current):
            told = [member[:-1] for member in members]  # without the position, which is this store's own affair
            yield _line({"batch": _batch_json(batch), "members": typed.to_builtins(told)})
        waiting += await store.archive.children(current.id)
        # One that is not completed may still need the replies of the run it comes from.
        if current.origin is not None and current.state is not RunState.COMPLETED:
            source = await store.runs.get(current.origin.run)
            waiting += [source] if source is not None else []


def _media_json(digest: str, type_: str, data: bytes | None) -> dict[str, Json]:
    """Return an image or a document with its bytes; one that is damaged is not written as if it were whole."""
    if data is None or digest_of(data) != digest:
        raise StoreFailed(f"the file {digest[:12]} is damaged in the store, so its run cannot be exported")
    return {"digest": digest, "type": type_, "data": b64encode(data).decode()}


def _media_of(told: Json) -> MediaFile:
    """Return an image or a document of a file; raises ValueError for bytes that are not what they are said to be."""
    if not isinstance(told, dict):
        raise ValueError("media must be an object")
    data = b64decode(str(told["data"]), validate=True)
    kind = MediaKind.DOCUMENT if told["type"] == PIECE_TYPE else TYPES.get(str(told["type"]))
    if kind is None or digest_of(data) != told["digest"]:
        raise ValueError(f"the media {told['digest']} is damaged")
    return MediaFile(kind=kind, type=str(told["type"]), digest=digest_of(data), size=len(data), data=data)


def _run_json(run: Run) -> dict[str, Json]:
    """Return a run without its user, its request and its continuation, which mean nothing in another store."""
    found: dict[str, Any] = typed.to_builtins(run)
    del found["request"], found["continued_by"]
    if found["budgets"] is not None:
        del found["budgets"]["user"]
    if run.rules == FIRST_RULES:
        del found["rules"]  # as files of that time are
    return found


def _entry_json(entry: Entry) -> dict[str, Json]:
    """Return an entry without what a reply does not have: files stay as they are without tier, thinking and wire."""
    found: dict[str, Any] = typed.to_builtins(entry)
    if entry.reply is not None:
        if entry.reply.content is None:
            del found["reply"]["content"]
        if not entry.reply.tier:
            del found["reply"]["tier"]
        if entry.reply.wire is None:
            del found["reply"]["wire"]
        if not entry.reply.usage.thinking:
            del found["reply"]["usage"]["thinking"]
    return found


def _batch_json(batch: Batch) -> dict[str, Json]:
    found = typed.to_builtins(batch)
    found["tariffs"] = {agent: _tariff_json(tariff) for agent, tariff in found["tariffs"].items()}
    return {
        ENDPOINT if name == "endpoint" else name: value for name, value in found.items() if name not in OF_THE_STORE
    }


def _tariff_json(tariff: dict[str, Any]) -> dict[str, Json]:
    """Return the prices of an agent, without a word about other prices or places where there is one only."""
    return {
        name: {key: part for key, part in told.items() if key != "others" or part} if isinstance(told, dict) else told
        for name, told in tariff.items()
        if told or name not in _OF_PLACES
    }


_OF_PLACES = ("geo", "batch_us")


async def _batches(store: Store, run: Run) -> AsyncIterator[tuple[Batch, list[BatchMember]]]:
    """Yield the batches that a run still waits for, with its members, page by page."""
    for batch in await store.batches.of_run(run.id):
        if batch.state in OVER:
            continue
        if batch.provider_id is None:
            raise Conflict(
                f"run {run.id} has calls in batch {batch.id}, and it is unknown whether the provider has it",
                suggestions=("muster batch reconcile", f"muster runs resume {run.id}"),
            )
        after = -1
        while page := await store.batches.waiting(batch.id, after, PAGE):
            yield batch, [member for member in page if member.attempt.run == run.id]
            after = page[-1].place


async def import_run(store: Store, path: Path) -> Run:
    """Store the runs of a file that is whole; returns the first."""
    runs = runs_of(path)
    if await store.runs.get(runs[0]) is not None:
        raise Conflict(f"run {runs[0]} is already in this store", suggestions=(f"muster runs show {runs[0]}",))
    importing = _Import(store)
    for _, record in _records(path):
        await importing.take(record)
    if importing.first is None:
        raise BadFile(str(path), "contains no run")
    return importing.first


class _Import:
    """Stores runs as they are read: a run's row comes after its entries, so that none looks whole before it is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._run: Run | None = None
        self._entries: list[Entry] = []
        self._parked: list[tuple[Batch, list[BatchMember]]] = []
        self.first: Run | None = None

    async def take(self, record: Mapping[str, Json]) -> None:
        """Take one record."""
        if "entry" in record:
            self._entries.append(typed.convert(record["entry"], Entry))
            if len(self._entries) >= PAGE:
                await self._write_entries()
        elif "batch" in record:
            self._parked.append(_parked_of(record))
        elif "media" in record:  # before the run, as its entries are: one at a time is in memory
            if self._run is not None:
                await self._store.media.keep(self._run.id, [_media_of(record["media"])])
        else:
            await self._write_run()
            if "run" in record and "muster" not in record:
                self._run = typed.convert(record["run"], Run)
                self.first = self.first or self._run

    async def _write_entries(self) -> None:
        await self._store.archive.restore_entries(self._entries)
        self._entries = []

    async def _write_run(self) -> None:
        await self._write_entries()
        if self._run is not None and await self._store.runs.get(self._run.id) is None:
            await self._store.archive.restore(self._run, self._parked)
        self._run, self._parked = None, []


def _parked_of(record: Mapping[str, Json]) -> tuple[Batch, list[BatchMember]]:
    told = typed.convert(record["batch"], dict[str, Json])
    batch = {"endpoint" if name == ENDPOINT else name: value for name, value in told.items()}
    return typed.convert(batch, Batch), typed.convert(record["members"], list[BatchMember])


def runs_of(path: Path) -> list[RunId]:
    """Return the runs of a file, which is read from end to end: one that is damaged or cut short is refused."""
    seal = hashlib.sha256()
    runs: list[RunId] = []
    entries, end = 0, None
    for number, (line, record) in enumerate(_records(path), 1):
        if end is not None:
            raise BadFile(str(path), "has data after its end", line=number)
        if number == 1 and record.get("muster") != FORMAT:
            raise BadFile(str(path), "is not an exported run of a supported version", line=1)
        end = record.get("end")
        if end is None:
            seal.update(line)
            entries += "entry" in record
            _try_convert(path, number, record, runs)
    if not runs and end is None and not path.stat().st_size:
        raise BadFile(str(path), "is empty; it should be a file that muster runs export wrote")
    if end is None:
        raise BadFile(str(path), "is cut short: its last line is missing")
    if end != {"entries": entries, "sha256": seal.hexdigest()}:
        raise BadFile(str(path), "was changed after it was written: its checksum does not match")
    if not runs:
        raise BadFile(str(path), "contains no run")
    return runs


def _try_convert(path: Path, number: int, record: Mapping[str, Json], runs: list[RunId]) -> None:
    try:
        if "entry" in record:
            typed.convert(record["entry"], Entry)
        elif "batch" in record:
            _parked_of(record)
        elif "media" in record:
            _media_of(record["media"])
        elif "muster" not in record:
            runs.append(typed.convert(record["run"], Run).id)
    except (KeyError, TypeError, ValueError, typed.ValidationError) as error:
        raise BadFile(str(path), f"contains a line that is neither a run nor an entry: {error}", line=number) from error


def _records(path: Path) -> Iterator[tuple[bytes, dict[str, Json]]]:
    number = 0
    try:
        with _open(path, path.suffix, "rb") as file:
            for number, line in enumerate(file, 1):
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise BadFile(str(path), "is not an exported run", line=number)
                yield line, record
    except FileNotFoundError as error:
        raise NotFound(f"no such file: {path}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadFile(str(path), f"is not an exported run: {json_fault(error)}", line=number) from error
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadFile(str(path), f"cannot be read: {why}") from error


def _open(path: Path, suffix: str, mode: str) -> IO[bytes]:
    if suffix == ".gz":
        return gzip.open(path, mode)  # type: ignore[return-value]
    return path.open(mode)


def _line(record: Mapping[str, Json]) -> bytes:
    return json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


@asynccontextmanager
async def borrow(path: Path) -> AsyncIterator[tuple[Store, Run]]:
    """Open the run of a file; the user's own store is not touched."""
    with TemporaryDirectory(prefix="muster-") as folder:
        store = open_sqlite(Path(folder) / "muster.db")
        try:
            yield store, await import_run(store, path)
        finally:
            await store.maintenance.close()
