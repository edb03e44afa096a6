"""What every store must do with images and documents: bytes once, named by runs, gone with the last of them."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from dataclasses import replace

from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.domain.media import MediaFile, MediaKind, digest_of
from muster.domain.run import Origin, Reuse
from muster.store.base import Store
from muster.testing.stores.values import NOW, SECRET, Check, new_run, raises


def picture(data: bytes = b"picture") -> MediaFile:
    """Make an image with some bytes."""
    return MediaFile(kind=MediaKind.IMAGE, type="image/png", digest=digest_of(data), size=len(data), data=data)


async def keeps_the_bytes_of_media_once(store: Store) -> None:
    """What two runs show is stored once, and is read as it was."""
    shown = picture()
    for name in ("run1", "run2"):
        await store.runs.create(new_run(name))
        assert await store.media.keep(RunId(name), [shown, shown]) == []
    assert await store.media.read(shown.digest) == b"picture"
    assert await store.media.type_of(shown.digest) == "image/png"
    assert await store.media.named(RunId("run2")) == [(shown.digest, "image/png")]
    assert await store.media.read(digest_of(b"other")) is None


async def tells_which_media_have_no_bytes(store: Store) -> None:
    """A reference names what is stored; of what is not, the digest is returned and nothing is named."""
    await store.runs.create(new_run("run1"))
    assert await store.media.keep(RunId("run1"), [picture().reference]) == [picture().digest]
    assert await store.media.named(RunId("run1")) == []


async def deletes_media_with_the_last_run_that_names_them(store: Store) -> None:
    """Runs that come from another name what it names; the bytes go with the last of them."""
    shown = picture()
    await store.runs.create(replace(new_run("run1"), media=(shown,)))
    await store.runs.create(replace(new_run("run2"), media=(picture(b"own"),)))
    heir = replace(new_run("run3"), origin=Origin(run=RunId("run1"), reuse=Reuse.CALLS))
    await store.runs.create(heir)
    await store.runs.cancel(RunId("run3"), NOW)
    await store.runs.cancel(RunId("run1"), NOW)
    await store.runs.cancel(RunId("run2"), NOW)
    assert await store.media.named(RunId("run3")) == [(shown.digest, "image/png")]
    await store.runs.delete(RunId("run3"), NOW)
    assert await store.media.read(shown.digest) == b"picture"
    await store.runs.delete(RunId("run1"), NOW)
    assert await store.media.read(shown.digest) is None
    assert await store.media.read(digest_of(b"own")) == b"own"


async def gives_a_child_the_media_of_its_spec(store: Store) -> None:
    """A child names what its spec does, of all that the run above it names."""
    shown, other = picture(), picture(b"other")
    await store.runs.create(replace(new_run("run1"), media=(shown, other)))
    await store.runs.create(
        replace(new_run("child"), parent=RunId("run1"), parent_key="c", spec={"shown": shown.digest})
    )
    assert await store.media.named(RunId("child")) == [(shown.digest, "image/png")]


async def refuses_media_with_a_secret(store: Store) -> None:
    """Bytes cannot be changed: what holds a configured secret is not stored."""
    await store.runs.create(new_run("run1"))
    await raises(BadArgument, store.media.keep(RunId("run1"), [picture(b"x" + SECRET.encode())]))
    assert await store.media.named(RunId("run1")) == []


CHECKS: tuple[Check, ...] = (
    keeps_the_bytes_of_media_once,
    tells_which_media_have_no_bytes,
    deletes_media_with_the_last_run_that_names_them,
    gives_a_child_the_media_of_its_spec,
    refuses_media_with_a_secret,
)
