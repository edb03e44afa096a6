"""The stage of the crash proofs: a folder, a rehearsal server, and driving processes that can be killed."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from muster.app import Muster, open_muster
from muster.domain.agent import Timeouts
from muster.engine.batches.base import Patience
from muster.engine.calls.retry import RetryPolicy
from muster.settings import load_settings
from tests import forked
from tests.chaos import work
from tests.chaos.fleet import Order
from tests.forked import ForkedProcess
from tests.rehearsal import ForkedRehearsal

ROOT = Path(__file__).parents[2]
PATIENCE = 100.0
LOOK_SECONDS = 0.02

# Short enough that a server that falls silent does not hold a proof up.
TIMEOUTS = Timeouts(connect=5.0, idle=0.6, call=2.0, grace=0.5)
HASTY = RetryPolicy(attempts=8, first_delay=0.02, longest_delay=0.3)
BRISK = Patience(settle=0.05, poll_first=0.02, poll_longest=0.2, grace=0.5)

FAULTS: Mapping[str, Any] = {
    "rates": {
        "429": 0.04,
        "500": 0.06,
        "529": 0.03,
        "cut_before": 0.05,
        "cut_after": 0.06,
        "truncated": 0.05,
        "garbage": 0.05,
        "cut_stream": 0.05,
        "stalled_stream": 0.03,
        "timeout": 0.03,
    },
    "at_most_per_digest": 4,
}

# The server's play money, live and in a batch: so both sides can be compared to the microdollar.
PRICES = "price = { input = 1, output = 5 }\nbatch_price = { input = 0.5, output = 2.5 }"


def declare_prices(folder: Path, more: str = "") -> None:
    """Write the settings of a folder in which both models cost what the rehearsal server charges."""
    kinds = [(name, *name.split("/")) for name in (work.ANTHROPIC, work.OPENAI)]
    sections = [
        f'[agents."{name}"]\nkind = "{kind}"\nmodel = "{model}"\n{PRICES}\n{more}' for name, kind, model in kinds
    ]
    (folder / "muster.toml").write_text("\n".join(sections), encoding="utf-8")


@dataclass(frozen=True)
class Ended:
    """What a driving process left behind."""

    code: int
    said: Mapping[str, Any]
    err: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def run(self) -> Mapping[str, Any]:
        assert "run" in self.said, self
        run: Mapping[str, Any] = self.said["run"]
        return run


class Driver:
    """A driving process."""

    def __init__(self, process: ForkedProcess) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ready(self) -> None:
        """Wait until it says that it is ready."""
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        assert b"ready" in line, await self.end()

    def go(self) -> None:
        """Let a process begin that waits for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def kill(self) -> Ended:
        """End it without a word, if it has not ended by itself."""
        if self._process.returncode is None:
            self._process.kill()
        return await self.end()

    async def end(self) -> Ended:
        """Wait for its end and read what it said."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        reading = asyncio.gather(self._process.stdout.read(), self._process.stderr.read(), self._process.wait())
        try:
            out, err, code = await asyncio.wait_for(reading, PATIENCE)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
            raise
        assert b"Traceback" not in err, err.decode()
        lines = out.decode().splitlines()
        return Ended(code=code, said=json.loads(lines[-1]) if lines else {}, err=err.decode())


class Stage:
    """One folder before one rehearsal server."""

    def __init__(self, folder: Path, sim: ForkedRehearsal, variables: Mapping[str, str] | None = None) -> None:
        self.folder, self.sim = folder, sim
        self._variables = variables or {}
        folder.mkdir(exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """All that a child process gets to know."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            "ANTHROPIC_API_KEY": "sk-test-anthropic",
            "OPENAI_API_KEY": "sk-test-openai",
            "ANTHROPIC_BASE_URL": self.sim.anthropic,
            "OPENAI_BASE_URL": self.sim.openai,
            **self._variables,
        }

    def order(
        self,
        calls: int,
        *,
        timeouts: Timeouts = TIMEOUTS,
        policy: RetryPolicy = HASTY,
        patience: Patience = BRISK,
        **rest: Any,
    ) -> Order:
        return Order(folder=str(self.folder), calls=calls, timeouts=timeouts, policy=policy, patience=patience, **rest)

    async def start(self, order: Order, *, crash_at: str | None = None) -> Driver:
        """Start a driving process."""
        more = {} if crash_at is None else {"MUSTER_CRASH_AT": crash_at}
        return Driver(
            await forked.start(
                "tests.chaos.fleet",
                msgspec.json.encode(order).decode(),
                folder=ROOT,
                environment=self.environment | more,
                stdin=PIPE,
            )
        )

    async def drive(self, order: Order, *, crash_at: str | None = None) -> Ended:
        """Start a driving process and wait for its end."""
        return await (await self.start(order, crash_at=crash_at)).end()

    async def drive_for(self, order: Order, seconds: float) -> Ended:
        """Kill a driving process so many seconds after it was ready."""
        driver = await self.start(order)
        await driver.ready()
        await asyncio.sleep(seconds)
        return await driver.kill()

    async def start_muster(self, *arguments: str, crash_at: str | None = None) -> ForkedProcess:
        """Start the command itself."""
        more = {} if crash_at is None else {"MUSTER_CRASH_AT": crash_at}
        return await forked.start("muster", *arguments, folder=self.folder, environment=self.environment | more)

    async def muster(self, *arguments: str, crash_at: str | None = None) -> tuple[int, str, str]:
        """Run the command itself."""
        process = await self.start_muster(*arguments, crash_at=crash_at)
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        return process.returncode or 0, out.decode(), err.decode()

    @asynccontextmanager
    async def open(
        self, environment: Mapping[str, str] | None = None, timeouts: Timeouts = TIMEOUTS
    ) -> AsyncIterator[Muster]:
        """Open the store of this folder in this process."""
        settings = load_settings(
            folder=self.folder, environment=self.environment if environment is None else environment
        )
        async with open_muster(settings=settings, timeouts=timeouts, policy=HASTY, patience=BRISK) as muster:
            yield muster

    async def wire_is_closed(self) -> bool:
        """Return whether the server is answering nobody any more; starts its audit over."""
        await asyncio.to_thread(self.sim.reset)
        return (await asyncio.to_thread(self.sim.audit)).max_in_flight == 0


async def until(condition: Callable[[], Awaitable[bool]], patience: float = PATIENCE) -> None:
    """Look again and again until something holds."""
    async with asyncio.timeout(patience):
        while not await condition():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(LOOK_SECONDS)
