"""Stores: opened where the settings say, looked after, and copied. `Muster.store`."""

import asyncio
import importlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.domain.batch import UNDER_WAY
from muster.domain.errors import BadArgument, BadConfiguration, NotFound, StoreAway, StoreFailed, StoreUnreachable
from muster.domain.ids import RunId
from muster.settings import DATABASE, Settings, is_address, is_database_url, show_database
from muster.store.base import Store
from muster.store.copying import CopyConnection, TableCopy, copy_tables
from muster.store.sqlite.connection import IGNORE
from muster.store.sqlite.store import open_file, open_sqlite

if TYPE_CHECKING:
    from muster.app.base.backend import Backend

_AWAY = "the database server does not answer"
MAX_BATCHES = 1000
START_SECONDS = 60.0  # for which servers and workers wait for a database server that is starting
START_LOOK_SECONDS = 0.5
PROBE_SECONDS = 1.0  # that a write may take before the store counts as locked, and for which its outcome counts

OnCopied = Callable[[str, int, int], None]  # table, rows copied, rows in all


def _nowhere(point: str) -> None:
    """Pass a kill point without dying."""


def _unheard(words: str) -> None:
    """Ignore the message."""


async def open_store(
    settings: Settings,
    *,
    reach: Callable[[str], None] = _nowhere,
    on_wait: Callable[[str], None] = _unheard,
    create: bool = True,
    start_secs: float = 0.0,
) -> Store:
    """Open the store of the settings; a server that takes its time does not keep the event loop waiting.

    Without `create` a file that is not there is not made. The tables of a database that is named are made in any case.
    A server that takes no connections is tried again for `start_secs`: it may be starting.
    """
    place = settings.database if settings.database_url is None else settings.database_url
    if isinstance(place, Path):
        return open_sqlite(place, secrets=settings.secrets, reach=reach, on_wait=on_wait, create=create)
    postgres = load_postgres()
    prepared = await _prepared(postgres, place, on_wait, start_secs)
    store: Store = postgres.PostgresStore(prepared, secrets=settings.secrets, reach=reach, on_wait=on_wait)
    return store


async def _prepared(postgres: Any, url: str, on_wait: Callable[[str], None], seconds: float) -> Any:
    """Return a database that is ready; a server that may be starting is waited for, and that is told once."""
    loop = asyncio.get_running_loop()
    until, told = loop.time() + seconds, False
    while True:
        try:
            return await _prepared_once(postgres, url)
        except StoreUnreachable as error:
            if loop.time() + START_LOOK_SECONDS > until:
                raise
            if not told:
                on_wait(f"{error.message}; waiting up to {seconds:g} seconds for it to start")
                told = True
        await asyncio.sleep(START_LOOK_SECONDS)


async def _prepared_once(postgres: Any, url: str) -> Any:
    preparing = asyncio.ensure_future(asyncio.to_thread(postgres.prepare_postgres, url))
    try:
        return await asyncio.shield(preparing)
    except asyncio.CancelledError:
        preparing.add_done_callback(lambda done: done.exception() or done.result().close())
        raise


def load_postgres() -> Any:
    """Load what opens databases, which takes longer than a short command; raises BadConfiguration without psycopg."""
    try:
        return importlib.import_module("muster.store.postgres.store")
    except ImportError as error:
        raise BadConfiguration(
            "the store is a PostgreSQL database, and the package psycopg is not installed",
            suggestions=("pip install 'muster-ai[postgres]'", "or unset MUSTER_DATABASE_URL to use a file"),
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCopy:
    """What was copied, from where to where; passwords are left out."""

    source: str
    target: str
    tables: Sequence[TableCopy]

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(table.rows for table in self.tables)


async def copy_store(
    source: str | Path, target: str | Path, *, on_progress: OnCopied = lambda table, done, total: None
) -> StoreCopy:
    """Copy a store into an empty one, verified by counts and digests; canceled or failed, nothing of it is kept.

    Each is the folder of a store, its file, or the address of a PostgreSQL database. A copy that was complete before
    it could be canceled is returned. It waits until it knows which of them it is, however often it is canceled.
    """
    stop = threading.Event()

    def work() -> StoreCopy:
        _require_place(source, "the store to copy from")
        _require_place(target, "the store to copy into")
        _require_no_file_above(target)
        with _opened(source) as from_, _made(target) as to:
            tables = copy_tables(from_, to, on_progress=on_progress, stopped=stop.is_set)
        return StoreCopy(source=_shown(source), target=_shown(target), tables=tables)

    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        stop.set()
        while not working.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({working})
        if working.exception() is None:  # it was done before it could be stopped
            return working.result()
        raise


def _require_place(place: str | Path, which: str) -> None:
    """Refuse an address of another kind, which would become a folder whose name shows a password, and an empty text."""
    if not str(place).strip():
        raise BadArgument(
            f"{which} is an empty text",
            suggestions=("name a folder or the address of a PostgreSQL database; is a variable of the shell not set?",),
        )
    if is_address(str(place)) and not is_database_url(str(place)):
        raise BadArgument(
            f"{which} is neither a folder or file nor the address of a PostgreSQL database",
            suggestions=(
                "write an address like postgresql://USER@HOST:5432/DATABASE, and set PGPASSWORD",
                "write ./ in front of a folder with such a name",
            ),
        )


def _require_no_file_above(place: str | Path) -> None:
    """Refuse a folder that is a file, or would lie in one, and one that may not be looked into."""
    if is_database_url(str(place)):
        return
    try:
        file = next((each for each in _file(place).parents if each.is_file()), None)
    except OSError as error:  # a name that is too long, say
        raise BadArgument(f"the store to copy into cannot be made: {error.strerror}: {place}") from error
    if file is not None:
        raise BadArgument(
            f"the store to copy into cannot be made: {file} is a file, not a folder",
            suggestions=(f"name a folder, or a file that ends in {Path(DATABASE).suffix}",),
        )


def _opened(place: str | Path) -> "AbstractContextManager[CopyConnection]":
    """Open the store that is copied; a file that is not there is not made."""
    if is_database_url(str(place)):
        return _database(str(place))
    file = _file(place)
    if not file.exists():
        raise NotFound(f"no store found at {file}", suggestions=("name the folder of the store, such as .muster",))
    return closing(open_file(file))


@contextmanager
def _made(place: str | Path) -> "Iterator[CopyConnection]":
    """Open the store that is copied into; whatever is made for it is removed when nothing comes of the copy."""
    if is_database_url(str(place)):
        with _database(str(place)) as connection:
            yield connection
        return
    file = _file(place)
    folders = [folder for folder in file.parents if not folder.exists()]  # the innermost first
    files = () if file.exists() else (file, *(Path(f"{file}{end}") for end in ("-wal", "-shm")), file.parent / IGNORE)
    made = [path for path in files if not path.exists()]
    try:
        with closing(open_file(file)) as connection:
            yield connection
    except BaseException:
        with suppress(OSError):  # what keeps a file from being removed does not hide why nothing came of the copy
            _remove(made, folders)
        raise


def _remove(files: Iterable[Path], folders: Iterable[Path]) -> None:
    """Remove files, and folders in which nobody has put anything else."""
    for path in files:
        path.unlink(missing_ok=True)
    for folder in folders:
        folder.rmdir()


def _database(url: str) -> "AbstractContextManager[CopyConnection]":
    postgres = load_postgres()
    try:
        return closing(postgres.open_database(url))
    except BadConfiguration as error:  # it was given as an argument here
        raise BadArgument(error.message, suggestions=error.suggestions) from None


def _file(place: str | Path) -> Path:
    """Return the file of a store whose folder, or file, is named."""
    path = Path(place)
    return path if path.suffix == Path(DATABASE).suffix and not path.is_dir() else path / DATABASE


def _shown(place: str | Path) -> str:
    return show_database(str(place)) if is_database_url(str(place)) else str(_file(place))


class StoreFile:
    """The store as a file: its size and condition, its free space, what keeps it from being written. `Muster.store`."""

    def __init__(self, backend: "Backend") -> None:
        self._store, self._engine, self._clock = backend.store, backend.engine, backend.clock
        self._place = backend.settings.database_url or backend.settings.database
        self._probe: asyncio.Future[None] | None = None
        self._probed_at = 0.0

    async def info(self) -> Mapping[str, Any]:
        """Return where the store is, how large, whether it is sound, and how many batches are under way."""
        under_way = len(await self._store.batches.select(UNDER_WAY, limit=MAX_BATCHES))
        return {**await self._store.maintenance.info(), "batches_under_way": under_way}

    async def vacuum(self) -> None:
        """Return the free space of the store to the disk; refused while runs are in progress."""
        await self._engine.sweep()
        await self._store.runs.finish_deletions()
        await self._store.maintenance.vacuum(self._engine.driver, self._clock.now())

    async def sweep(self) -> None:
        """Mark the runs of dead drivers as interrupted."""
        await self._engine.sweep()

    async def shortage(self) -> str | None:
        """Return why the store cannot be written to; None when it can."""
        shortage = await self._store.maintenance.shortage()
        return None if shortage is None else shortage.message

    async def require_writable(self, seconds: float = PROBE_SECONDS) -> None:
        """Raise StoreFailed when nothing can be written within some seconds; whoever asks meanwhile asks the same."""
        if await self.shortage() is not None:
            raise StoreFailed("the store cannot be written to: it is read-only, or its disk is full")
        now, probe = self._clock.monotonic(), self._probe
        if probe is None or (probe.done() and now - self._probed_at >= PROBE_SECONDS):
            probe = self._probe = asyncio.ensure_future(self._store.maintenance.touch())
            self._probed_at = now
        done, _ = await asyncio.wait({probe}, timeout=seconds)
        if not done:
            why = "a write waits for another process or a slow disk"
            away = not isinstance(self._place, Path) and not await self._is_read(seconds)
            raise StoreFailed(f"the store cannot be written to: {_AWAY if away else why}")
        if isinstance(probe.exception(), StoreAway):
            raise StoreFailed(f"the store cannot be written to: {_AWAY}")
        if probe.exception() is not None:
            raise StoreFailed("the store cannot be written to")

    async def _is_read(self, seconds: float) -> bool:
        """Return whether something can be read within some seconds."""
        try:
            await asyncio.wait_for(self._store.runs.get(RunId("none")), seconds)
        except (TimeoutError, StoreFailed):
            return False
        return True

    async def copy_to(self, target: str | Path) -> StoreCopy:
        """Copy the whole store into an empty one: a folder, or the address of a PostgreSQL database."""
        return await copy_store(self._place, target)

    def stop_waiting(self) -> None:
        """Wait no longer for a lock that another process holds."""
        self._store.maintenance.give_up()
