"""What git knows of a folder: the root, changed files, staged files, files at all. It only asks and never changes any.

The environment goes to git untouched: a hook is told by it which index is meant. Objects that replace others are not
followed. Paths come back relative to the root.
"""

import asyncio
import os
import signal
import stat
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from muster.domain.errors import BadArgument, BadConfiguration, FixSpec, MusterError
from muster.text.secrets.redaction import redact

SECONDS = 60.0  # that one command of git's may take
_PLAIN = ("100644", "100755")  # modes of files; links and submodules have others
_MAX_WORDS = 500  # characters of what git says that are told


class Git:
    """Asks git about one folder."""

    def __init__(self, folder: Path, *, seconds: float = SECONDS) -> None:
        self._folder, self._seconds = folder, seconds

    async def root(self) -> Path | None:
        """Return the top of the repository that the folder is in; None when it is in none."""
        nearby = await asyncio.to_thread(_is_in_repository, self._folder)
        try:
            found = await self._git("rev-parse", "--show-toplevel", folder=self._folder)
        except FixSpec:
            if nearby:  # there is one: what stands against it must be told
                raise
            return None
        return Path(os.fsdecode(found.removesuffix(b"\n")))

    async def is_inside(self) -> bool:
        """Return whether the folder is in a repository, also in one about which git refuses to tell."""
        try:
            return await self.root() is not None
        except MusterError:
            return True

    async def changed(self, ref: str | None = None) -> tuple[str, ...]:
        """Return the files that differ from a commit, HEAD unless told, with those that git does not know yet."""
        root = await self._top()
        base = await self._commit(root, ref or "HEAD")
        found = await self._diff(root, base)
        new = _paths(await self._git("ls-files", "-z", "--others", "--exclude-standard", folder=root))
        return await asyncio.to_thread(_on_disk, root, {*found, *new})

    async def staged(self) -> tuple[str, ...]:
        """Return the files that the next commit would add or change."""
        root = await self._top()
        return tuple(sorted(await self._diff(root, await self._commit(root, "HEAD"), "--cached")))

    async def listed(self, folder: Path) -> tuple[str, ...]:
        """Return the files below a folder that are in the repository, or are new and not ignored."""
        root = await self._top()
        options = ("-z", "--cached", "--others", "--exclude-standard")
        found = await self._git("--literal-pathspecs", "ls-files", *options, "--", str(folder), folder=root)
        return await asyncio.to_thread(_on_disk, root, set(_paths(found)))

    async def check_out_staged(self, paths: Sequence[str], into: Path) -> None:
        """Write files as they are staged into a folder, each under its path."""
        if not paths:
            return
        root = await self._top()
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        options = ("--force", "-z", "--stdin", f"--prefix={_whole(into)}/")
        await self._git("checkout-index", *options, folder=root, told=names)

    async def hooks(self) -> Path:
        """Return the folder of the hooks that git runs here, wherever it is set to be."""
        root = await self._top()
        found = await self._git("rev-parse", "--git-path", "hooks", folder=root)
        return root / os.fsdecode(found.removesuffix(b"\n"))

    async def _top(self) -> Path:
        root = await self.root()
        if root is None:
            raise BadArgument(
                f"{self._folder.absolute()} is not in a git repository",
                suggestions=("create one with git init, or go to a folder of one",),
            )
        return root

    async def _commit(self, root: Path, ref: str) -> str:
        """Find the commit of a name; HEAD of a repository without any stands for nothing at all."""
        # No name begins with a hyphen; older gits take --end-of-options for a name itself.
        if not ref.startswith("-") and "\0" not in ref:
            code, found, _ = await self._run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", folder=root)
            if code == 0:
                return found.decode("ascii").strip()
        if ref != "HEAD":
            raise BadArgument(
                f"{ref!r} is not a commit of {root}",
                suggestions=("use a commit, a branch or a tag; git log --oneline --all lists them",),
            )
        return (await self._git("hash-object", "-t", "tree", "--stdin", folder=root)).decode("ascii").strip()

    async def _diff(self, root: Path, base: str, *options: str) -> list[str]:
        """Return the plain files that differ from a commit and are not deleted."""
        fixed = ("--raw", "-z", "--no-renames", "--diff-filter=d", "--no-ext-diff", "--no-textconv", "--no-color")
        words = _paths(await self._git("diff", *fixed, *options, base, "--", folder=root))
        records = [(head.split(), path) for head, path in zip(words[::2], words[1::2], strict=True)]
        if conflicts := [path for head, path in records if head[4] == "U"]:
            raise BadArgument(
                f"{conflicts[0]} has a merge conflict",
                suggestions=("resolve it, then git add",),
            )
        return [path for head, path in records if head[1] in _PLAIN]

    async def _git(self, *arguments: str, folder: Path, told: bytes = b"") -> bytes:
        code, found, words = await self._run(*arguments, folder=folder, told=told)
        if code != 0:
            said = redact(words.decode("utf-8", "replace").strip()[:_MAX_WORDS]).text
            raise BadArgument(f"git {_verb(arguments)} failed in {folder} with exit code {code}: {said}")
        return found

    async def _run(self, *arguments: str, folder: Path, told: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run git once: without a shell, without taking locks, and not for ever."""
        command = ("git", "--no-optional-locks", "--no-replace-objects", *arguments)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=folder,
                stdin=PIPE if told else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,  # whatever git starts is ended with it
            )
        except OSError as error:
            raise _not_started(error, folder) from error
        try:
            async with asyncio.timeout(self._seconds):
                found, words = await process.communicate(told or None)
        except TimeoutError:
            raise MusterError(f"git {_verb(arguments)} took longer than {self._seconds:g} s in {folder}") from None
        finally:
            await _end(process)
        return process.returncode or 0, found, words


async def _end(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())


def _not_started(error: OSError, folder: Path) -> FixSpec:
    if error.filename == "git":
        return BadConfiguration("git was not found on PATH", suggestions=("install git",))
    return BadArgument(f"git cannot be run in {folder}: {error.strerror}")


def _verb(arguments: Sequence[str]) -> str:
    return next(word for word in arguments if not word.startswith("-"))


def _whole(folder: Path) -> Path:
    """Spell a folder so that it is the same one for git, which works somewhere else."""
    return folder.absolute()


def _is_in_repository(folder: Path) -> bool:
    """Look for a repository without git, which may be missing or not willing."""
    here = folder.resolve()
    return any((above / ".git").exists() for above in (here, *here.parents))


def _paths(found: bytes) -> list[str]:
    return [os.fsdecode(part) for part in found.split(b"\0") if part]


def _on_disk(root: Path, paths: set[str]) -> tuple[str, ...]:
    """Keep what is a plain file now: no link, no submodule, nothing that was deleted since."""
    return tuple(sorted(path for path in paths if _is_plain(root / path)))


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
