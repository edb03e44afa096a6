"""Images and documents in the database: bytes stored once, named by runs, deleted with the last of them."""

from collections.abc import Awaitable, Iterable, Sequence

from muster.domain.errors import BadArgument
from muster.domain.exchange import PIECE_TYPE
from muster.domain.ids import RunId
from muster.domain.media import Media, MediaFile
from muster.domain.run import NewRun
from muster.store.base.media import StoredPiece
from muster.store.codec import Codec
from muster.store.queries import DatabaseConnection, DatabaseReader, first
from muster.store.writer import Writer

MAX_DELETED = 16  # in one transaction


class DatabaseMedia:
    """The images and documents of a database."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    async def read(self, digest: str) -> bytes | None:
        """Return the bytes that are stored under a digest."""
        row = first(await self._reader.rows("select_media", {"digest": digest}))
        return bytes(row["data"]) if row else None

    async def type_of(self, digest: str) -> str | None:
        """Return the type of what is stored under a digest."""
        row = first(await self._reader.rows("select_media_type", {"digest": digest}))
        return str(row["type"]) if row else None

    async def named(self, run: RunId) -> Sequence[tuple[str, str]]:
        """Return the digests that a run names, each with its type."""
        return [(row["digest"], row["type"]) for row in await self._reader.rows("select_media_of_run", {"run_id": run})]

    def keep(self, run: RunId, media: Sequence[Media]) -> Awaitable[Sequence[str]]:
        """Store the bytes that are there, and note that the run names all of it."""
        return self._writer.run(lambda db: keep_media(db, self._codec, run, media))

    def keep_pieces(self, run: RunId, pieces: Sequence[StoredPiece]) -> Awaitable[None]:
        """Store pieces of the exchanges of a run, in which there are no secrets any more."""
        return self._writer.run(lambda db: _keep_pieces(db, run, pieces))

    def without_secrets(self, data: bytes) -> bytes:
        """Return bytes without configured secrets."""
        return self._codec.clean_bytes(data)


def keep_media(database: DatabaseConnection, codec: Codec, run: RunId, media: Iterable[Media]) -> Sequence[str]:
    """Store images and documents of a run; return the digests of which there are no bytes."""
    missing: list[str] = []
    for each in sorted({each.digest: each for each in media}.values(), key=lambda each: each.digest):
        # Locked, so that a deletion under way does not take the bytes away before the name is there.
        if not database.rows("lock_media", {"digest": each.digest}):
            if not isinstance(each, MediaFile):
                missing.append(each.digest)
                continue
            _insert(database, codec, each)
        database.execute("name_media", {"run_id": run, "digest": each.digest})
    return missing


def _insert(database: DatabaseConnection, codec: Codec, file: MediaFile) -> None:
    if codec.clean_bytes(file.data) != file.data:
        raise BadArgument(f"the {file.label} contains a configured secret", suggestions=("remove it from the file",))
    database.execute(
        "insert_media", {"digest": file.digest, "type": file.type, "size": len(file.data), "data": file.data}
    )


def _keep_pieces(database: DatabaseConnection, run: RunId, pieces: Iterable[StoredPiece]) -> None:
    for digest, data in sorted(pieces):  # in one order, so that nobody waits for each other
        if not database.rows("lock_media", {"digest": digest}):
            database.execute("insert_media", {"digest": digest, "type": PIECE_TYPE, "size": len(data), "data": data})
        database.execute("name_media", {"run_id": run, "digest": digest})


def name_media(database: DatabaseConnection, codec: Codec, new: NewRun, spec: str) -> None:
    """Note what a new run shows: what it was given, and what its spec takes over from another run."""
    if new.media:
        keep_media(database, codec, new.id, new.media)
    if new.origin is not None:
        database.execute("name_media_of_origin", {"run_id": new.id, "origin": new.origin.run})
    if new.parent is None:
        return
    for row in database.rows("select_media_of_run", {"run_id": new.parent}):
        if row["digest"] in spec:
            database.execute("name_media", {"run_id": new.id, "digest": row["digest"]})


def delete_unnamed_media(database: DatabaseConnection) -> bool:
    """Delete some of what no run names any more; return whether there may be more."""
    rows = database.rows("select_unnamed_media", {"most": MAX_DELETED})
    for row in rows:
        database.rows("lock_media", {"digest": row["digest"]})  # a run that is about to name it comes first
        database.execute("delete_unnamed_media", {"digest": row["digest"]})
    return len(rows) == MAX_DELETED
