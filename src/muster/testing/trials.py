"""The program in which `kill_everywhere` tries a workload: it loads the workload once, and forks for every trial.

It reads a `Program` from the first line of its standard input, and a `Trial` from every further one; it writes a line
with an `Outcome` for each. `python -m muster.testing.trials` is started by `muster.testing.crashes` only.
"""

import asyncio
import importlib
import importlib.util
import json
import os
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from muster.agents.base import Agent, OnDelta
from muster.app import Muster, open_muster
from muster.app.agent_kinds.given import GivenAgent, read_given
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, identify
from muster.domain.canonical import Json
from muster.domain.errors import MusterError
from muster.domain.run import RunState
from muster.settings import load_settings
from muster.testing.clock import FakeClock
from muster.testing.laws import violations
from muster.testing.trial import ModulePlace, Outcome, Program, Trial

LOG, PAID, OUTCOME = "trial.log", "paid.txt", "outcome.json"


class CountedAgent:
    """Writes down every answer of an agent, also one that nobody lives to store."""

    def __init__(self, agent: Agent, file: Path) -> None:
        self._agent, self._file = agent, file

    @property
    def profile(self) -> Profile:
        """Return that of the agent."""
        return self._agent.profile

    def quote(self, request: Request) -> Quote:
        """Return that of the agent."""
        return self._agent.quote(request)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Ask the agent, and count its answer."""
        reply = await self._agent.call(request, timeouts, on_delta)
        with self._file.open("a", encoding="utf-8") as paid:
            paid.write(identify(self.profile.name, request).digest + "\n")
        return reply

    async def close(self) -> None:
        """Close the agent."""
        await self._agent.close()


def main() -> None:
    """Load the program, and try it as often as is asked for."""
    program = _program(json.loads(sys.stdin.readline()))
    sys.path[:] = program.path
    _load(program.defined)
    agents = None if program.agents is None else getattr(_load(program.agents[0]), program.agents[1])
    if threading.active_count() > 1:
        sys.exit(f"{program.defined.module} starts a thread when it is imported; a trial cannot be forked from that")
    _write({"ready": True})
    for line in sys.stdin:
        _write(asdict(_try(program, agents, Trial(**json.loads(line)))))


def _program(told: Mapping[str, Any]) -> Program:
    agents = told["agents"]
    found = None if agents is None else (ModulePlace(**agents[0]), agents[1])
    return Program(**{**told, "defined": ModulePlace(**told["defined"]), "agents": found})


def _load(place: ModulePlace) -> ModuleType:
    """Import a module: by its name, or from its file when that is not on the path."""
    if place.module in sys.modules:
        return sys.modules[place.module]
    if place.file is None or importlib.util.find_spec(place.module) is not None:
        return importlib.import_module(place.module)
    found = importlib.util.spec_from_file_location(place.module, place.file)
    if found is None or found.loader is None:
        sys.exit(f"{place.file} is not a module of Python")
    module = importlib.util.module_from_spec(found)
    sys.modules[place.module] = module
    found.loader.exec_module(module)
    return module


def _write(value: Mapping[str, Json]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _try(program: Program, agents: Callable[[], Mapping[str, GivenAgent]] | None, trial: Trial) -> Outcome:
    folder = Path(trial.folder)
    (folder / OUTCOME).unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        _be_the_process(program, agents, trial, folder)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return Outcome(signal=os.WTERMSIG(status))
    if not (folder / OUTCOME).exists():
        return Outcome(error=f"the process ended by itself:\n{(folder / LOG).read_text(encoding='utf-8')[-2000:]}")
    return Outcome(**json.loads((folder / OUTCOME).read_text(encoding="utf-8")))


def _be_the_process(
    program: Program, agents: Callable[[], Mapping[str, GivenAgent]] | None, trial: Trial, folder: Path
) -> None:
    """Do the work as a process of its own would, and never return."""
    try:
        log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.alarm(trial.seconds)
        outcome = asyncio.run(_work(program, {} if agents is None else agents(), trial, folder))
        (folder / OUTCOME).write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


async def _work(program: Program, agents: Mapping[str, GivenAgent], trial: Trial, folder: Path) -> Outcome:
    project = folder if program.project is None else Path(program.project)
    settings = replace(load_settings(folder / "store", folder=project), crash_at=trial.crash)
    given = read_given(agents)
    counted = {name: CountedAgent(agent, folder / PAID) for name, agent in given.made.items()}
    told = {**{name: agents[name] for name in agents if name not in counted}, **counted}
    clock = FakeClock()
    async with open_muster(settings=settings, agents=told, clock=clock) as m:
        try:
            work = _outcome(m, clock, program, folder if len(counted) == len(agents) else None)
            return await clock.passing(work, may_pass=lambda: m.runs.only_wait)
        except MusterError as error:
            return Outcome(error=f"{error.code}: {error.message}")


async def _outcome(m: Muster, clock: FakeClock, program: Program, counted: Path | None) -> Outcome:
    """Start the run, or go on with the one that was left, and check the laws when it is over."""
    left = await m.runs.page(roots=True, limit=1)
    if not left:
        handle = await m.start(program.workload, program.spec, name="trial", budget_usd=program.budget_usd)
    elif left[0].state is RunState.COMPLETED:
        handle = m.runs.watch(left[0])
    else:
        (last,) = await m.runs.events(left[0].id, left[0].last_seq - 1, 1)
        clock.advance(last.at + 1 - clock.now())  # the time goes on where it was when the process was killed
        handle = await m.resume(left[0].id)
    result = await handle.result()
    broken = await violations(m, None if counted is None else _paid(counted / PAID))
    runs = await m.runs.page(limit=500)
    unused = [(await m.runs.details(run.id)).unused for run in runs]
    return Outcome(
        result=result,
        error="\n".join(broken),
        uncertain=sum(run.calls.uncertain for run in runs),
        keys=[key for run in runs for key in await m.runs.keys(run.id)],
        unused=[key for one in unused if one is not None for key in one.keys],
    )


def _paid(file: Path) -> Counter[str]:
    return Counter(file.read_text(encoding="utf-8").split()) if file.exists() else Counter()


if __name__ == "__main__":
    main()
