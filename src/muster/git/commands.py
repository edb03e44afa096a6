"""Runs git for commands that change a repository: scrubbed environment, no hooks, no signing, bounded time and output.

`Git` in `repository.py` asks with the environment of the caller, as a hook must; this module never uses it.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from muster.agents.processes.process import Process, ProcessCommand, environment_of, start
from muster.agents.processes.system import TOKEN_VARIABLE
from muster.domain.errors import BadArgument, BadConfiguration, MusterError, NotStarted
from muster.text.secrets.redaction import redact

SECONDS = 600.0  # that one command may take: a checkout of a large repository is slow
MAX_OUTPUT = 64 * 1_048_576  # bytes of an answer
_MAX_LINES = 3  # of what git says that are shown
_MAX_WORDS = 300  # characters of each

# Keys and tokens of the operator stay out: an agent may have configured a filter, which git runs.
_INHERITED = (
    "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME", TOKEN_VARIABLE,
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
)  # fmt: skip
IDENTITY = "muster"
_OWN = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    # An agent may have told git to read other objects, or another history, in place of those that a commit names.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_AUTHOR_NAME": IDENTITY,
    "GIT_AUTHOR_EMAIL": "muster@localhost",
    "GIT_COMMITTER_NAME": IDENTITY,
    "GIT_COMMITTER_EMAIL": "muster@localhost",
}
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",  # its daemon would keep our locks
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.quotePath=false",  # names of files in patches are read by people
    "core.filesRefLockTimeout=10000",
    "core.packedRefsTimeout=10000",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "i18n.commitEncoding=UTF-8",
)
# Files of Git LFS stay pointers, also where git-lfs is configured and not installed.
NO_SMUDGE = ("filter.lfs.smudge=", "filter.lfs.process=", "filter.lfs.required=false")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one command of git's left."""

    code: int
    output: bytes
    words: str  # of its standard error, without secrets
    cut: bool = False  # the output was longer than it may be

    @property
    def text(self) -> str:
        """Return the output as one line of text."""
        return os.fsdecode(self.output).strip()

    @property
    def parts(self) -> list[str]:
        """Return the parts of an output that are separated by zero bytes."""
        return [os.fsdecode(part) for part in self.output.split(b"\0") if part]

    @property
    def shown(self) -> list[str]:
        """Return the same parts as text that can be stored: bytes that are not UTF-8 are replaced."""
        return [part.decode("utf-8", "replace") for part in self.output.split(b"\0") if part]


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCommands:
    """Runs git in one folder; made narrower by `at`, `with_index`, `holding` and `configured`."""

    environment: Mapping[str, str] = field(repr=False)  # of the caller; only a few names of it are used
    folder: Path
    seconds: float = SECONDS
    git_dir: Path | None = None  # None: git finds it from the folder
    index: Path | None = None
    locks: tuple[int, ...] = ()
    settings: tuple[str, ...] = ()
    skip_smudge: bool = True

    def at(self, folder: Path, git_dir: Path | None = None) -> "GitCommands":
        """Return the same for another working tree; with its git folder, whatever lies at `.git` in there."""
        return replace(self, folder=folder, git_dir=git_dir, index=None)

    def with_index(self, index: Path) -> "GitCommands":
        """Return the same with an index file of its own."""
        return replace(self, index=index)

    def holding(self, lock: int) -> "GitCommands":
        """Return the same with a lock that each git holds too: it outlives this process if git does."""
        return replace(self, locks=(*self.locks, lock))

    def configured(self, *settings: str) -> "GitCommands":
        """Return the same with more settings of git's."""
        return replace(self, settings=(*self.settings, *settings))

    async def ask(self, *arguments: str, told: bytes = b"") -> Answer:
        """Run git and return its answer; raise when it failed or said too much."""
        answer = await self.run(*arguments, told=told)
        if answer.code != 0:
            raise self.failed(arguments, answer)
        if answer.cut:
            raise MusterError(f"git {arguments[0]} wrote more than {MAX_OUTPUT // 1_048_576} MB in {self.folder}")
        return answer

    async def run(self, *arguments: str, told: bytes = b"", most: int = MAX_OUTPUT) -> Answer:
        """Run git once, without a shell and in a process group of its own, and return its answer whatever it is."""
        order = ProcessCommand(
            agent="git",
            command=self._command(arguments),
            folder=self.folder,
            environment=self._environment(),
            input=told or None,
            descriptors=self.locks,
        )
        try:
            process = start(order, f"git-{uuid4().hex}")
        except NotStarted as error:
            raise _not_started(error, self.folder) from error
        try:
            output, cut = await self._output(process, arguments[0], most)
        finally:
            await process.end()  # git removes its lock files when it is asked to end
        status = 0 if cut or process.status is None else process.status
        return Answer(code=status, output=output, words=_shown(process.log.text), cut=cut)

    async def _output(self, process: Process, verb: str, most: int) -> tuple[bytes, bool]:
        """Return what git writes until it exits, and whether it is cut; raise when its time is over."""
        deadline = asyncio.get_running_loop().time() + self.seconds
        output = bytearray()
        while process.status is None:
            if not await process.news(deadline + process.lost):
                raise MusterError(f"git {verb} took longer than {self.seconds:g} s in {self.folder}")
            output += process.take()
            if len(output) > most:
                return bytes(output[:most]), True
        process.drain()
        output += process.take()
        return bytes(output[:most]), len(output) > most

    def failed(self, arguments: tuple[str, ...], answer: Answer) -> MusterError:
        """Return the error for a command that failed."""
        how = f"with exit code {answer.code}" if answer.code >= 0 else f"by signal {-answer.code}"
        said = f": {answer.words}" if answer.words else ""
        return MusterError(f"git {arguments[0]} failed in {self.folder} {how}{said}")

    def _command(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        settings = (part for setting in (*_SETTINGS, *self.settings) for part in ("-c", setting))
        place = () if self.git_dir is None else (f"--git-dir={self.git_dir}", f"--work-tree={self.folder}")
        return ("git", "--no-pager", "--no-optional-locks", *settings, *place, *arguments)

    def _environment(self) -> dict[str, str]:
        found = environment_of(self.environment, named=_INHERITED, own=_OWN)
        if self.skip_smudge:
            found["GIT_LFS_SKIP_SMUDGE"] = "1"
        if self.index is not None:
            found["GIT_INDEX_FILE"] = str(self.index)
        return found


def storable(path: str) -> str:
    """Return a path as text that can be stored; git no longer finds the file by it if its name is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def _shown(words: str) -> str:
    """Return what git says without secrets, in one line: the cause comes first, what it led to last."""
    lines = [line.strip() for line in redact(words).text.splitlines() if line.strip()]
    if len(lines) > _MAX_LINES:
        lines = [*lines[: _MAX_LINES - 1], "…", lines[-1]]
    return "; ".join(line[:_MAX_WORDS] for line in lines)


def _not_started(error: NotStarted, folder: Path) -> MusterError:
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.filename == "git":
        return BadConfiguration("git was not found on PATH", suggestions=("install git",))
    return BadArgument(f"git cannot be run in {folder}: {cause.strerror if isinstance(cause, OSError) else cause}")
