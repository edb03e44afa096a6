"""Keys that a program prints: kept while they are young, printed again when one is refused, and written nowhere."""

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from muster.agents.faults import fingerprint
from muster.agents.processes.conversation import Finished, communicate
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.domain.agent import Timeouts
from muster.domain.errors import AgentFailed, AuthRefused, BadOutput
from muster.text.secrets.redaction import Redactor

SECONDS = 60.0  # that the program may take
MAX_KEY = 16_384  # characters
MAX_SHOWN = 500  # characters of what it wrote to standard error
_FRESH = 5.0  # seconds for which a key is taken for one that was just printed


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCommand:
    """A program that prints a key, without a shell, and for how long that key is used."""

    command: tuple[str, ...]
    lifetime: float = 1800.0  # seconds
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # all of it; may hold secrets
    folder: Path | None = None

    def account(self, base_url: str) -> str:
        """Return what an account is known by: the keys change, so the command stands for them."""
        return fingerprint(base_url, f"key_command\n{shlex.join(self.command)}")


class PrintedKey:
    """The key of one command, for all who need it in this process: the program runs once, however many wait for it."""

    def __init__(
        self,
        command: KeyCommand,
        processes: ProcessRegistry,
        *,
        hide: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command, self._processes = command, processes
        self._hide, self._clock = hide, clock  # `hide` keeps a key out of everything that is stored
        self._key = ""
        self._printed = 0.0
        self._printing: asyncio.Task[str] | None = None

    async def current(self) -> str:
        """Return a key that is younger than its lifetime; the last one where the program fails, until it is refused."""
        if self._key and self._clock() - self._printed < self._command.lifetime:
            return self._key
        try:
            return await self._print()
        except AuthRefused:
            if not self._key:
                raise
            return self._key

    async def fresh(self) -> str:
        """Return a key that was just printed, for what cannot be sent twice."""
        is_fresh = self._key and self._clock() - self._printed < _FRESH
        return self._key if is_fresh else await self._print()

    async def after(self, refused: str) -> str:
        """Return another key than one that was refused, by printing it unless somebody else did so meanwhile."""
        if self._key not in ("", refused):
            return self._key
        return await self._print()

    async def close(self) -> None:
        """End the program if it runs; may be called twice."""
        task, self._printing = self._printing, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, AuthRefused):
                await task

    async def _print(self) -> str:
        if self._printing is None:
            self._printing = asyncio.ensure_future(self._run())
            self._printing.add_done_callback(self._over)
        return await asyncio.shield(self._printing)  # whoever is canceled leaves it to the others

    def _over(self, task: "asyncio.Task[str]") -> None:
        self._printing = None
        if not task.cancelled():
            task.exception()  # told to whoever waited, if anybody still does

    async def _run(self) -> str:
        order = ProcessCommand(
            agent="key_command",
            command=self._command.command,
            folder=self._command.folder,
            environment=self._command.environment,
        )
        try:
            async with self._processes.process(order) as process:
                finished = await communicate(process, Timeouts(call=SECONDS, idle=SECONDS), _bounded())
        except AgentFailed as error:
            raise self._failed(error.message.removeprefix("agent 'key_command': ")) from None
        key = self._read(finished)
        if key != self._key:
            self._hide(key)
        self._key, self._printed = key, self._clock()
        return key

    def _read(self, finished: Finished) -> str:
        if finished.status != 0:
            said = Redactor().text(finished.log).strip()[:MAX_SHOWN] or "it wrote nothing to standard error"
            raise self._failed(f"it ended with status {finished.status}: {said}")
        key = finished.output.decode("ascii", "replace").strip()
        if not key:
            raise self._failed("it printed nothing")
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise self._failed("it printed something else than one word, such as a token")
        return key

    def _failed(self, why: str) -> AuthRefused:
        program = self._command.command[0]
        return AuthRefused(
            f"the key_command {program!r} gave no key: {why}",
            suggestions=(f"run it by hand and see whether it prints a key: {program} …",),
        )


def _bounded() -> Callable[[bytes], None]:
    """Return what ends a program that prints too much to be a key."""
    seen = 0

    def count(data: bytes) -> None:
        nonlocal seen
        seen += len(data)
        if seen > MAX_KEY:
            raise BadOutput(f"it printed more than {MAX_KEY:,} characters")

    return count
