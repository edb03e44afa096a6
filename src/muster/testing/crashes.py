"""`kill_everywhere`: a workload is killed at every point, resumed, and must come to the same."""

import inspect
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from muster.app.agent_kinds.given import GivenAgent
from muster.domain.canonical import Json
from muster.domain.entry import STABLE_KEYS, UnusedEntries
from muster.domain.errors import BadArgument
from muster.engine.declared import ResultT, SpecT, WorkloadFunction, declared
from muster.testing.folders import memory_folder
from muster.testing.trial import ModulePlace, Outcome, Program, Trial

# Where a process may die that runs a workload, without batches and people.
POINTS = (
    "run.claimed",
    "call.before_open",
    "call.opened",
    "call.answered",
    "call.settled",
    "signal.before_take",
    "signal.taken",
    "store.before_commit",
    "store.after_commit",
    "run.before_release",
)
MAX_SHOWN = 10
Agents = Callable[[], Mapping[str, GivenAgent]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashReport:
    """What `kill_everywhere` saw: what the run comes to, where it was killed, and how many attempts were uncertain."""

    result: Json
    kills: tuple[str, ...]  # POINT:NTH
    uncertain: int


def kill_everywhere(
    workload: WorkloadFunction[SpecT, ResultT],
    spec: SpecT,
    *,
    agents: Agents | None = None,
    project: str | Path | None = None,
    budget_usd: str | None = None,
    check: Callable[[Json], object] | None = None,
    seconds: int = 60,
) -> CrashReport:
    """Kill a run of a workload at every point with SIGKILL, resume it each time, and check what it came to.

    Each trial is a process with a store of its own, and a clock on which time passes at once while everything waits.
    At the end the result must be that of a run that was not killed, or whatever `check` accepts, which gets it as it is
    stored, the laws of money and of work hold, and nothing that was stored is done again under another key; else
    AssertionError says where it was killed. `agents` is a function on the top level of a module that returns them as
    `muster.open(agents=…)` takes them, and the workload is defined on the top level of one too. A trial that takes
    more than `seconds` has failed.
    """
    program = _program(workload, spec, agents, project, budget_usd)
    with memory_folder() as folder, _servers(program) as (server, other):
        trial = Trial(folder=str(folder), crash=None, seconds=seconds)
        whole = server.try_once(trial)
        if whole.signal or whole.error:
            raise AssertionError(f"without a kill: {_told(whole, seconds)}")
        if check is not None:
            check(whole.result)
        kills, failed, uncertain = list[str](), list[str](), 0
        for point in POINTS:
            for number in count(1):
                crash = f"{point}:{number}"
                killed = server.try_once(replace(trial, crash=(point, number)), keep=True)
                if killed.signal != signal.SIGKILL:
                    failed += [f"{crash}: {_told(killed, seconds)}"] if killed.signal or killed.error else []
                    _forget(folder)
                    break  # it is not passed so often
                kills.append(crash)
                resumed = other.try_once(trial)  # sets have another order there, as in any other process
                uncertain += resumed.uncertain
                failed += [f"killed at {crash}: {flaw}" for flaw in _flaws(resumed, whole, check, seconds)]
        if not kills:
            raise AssertionError("the run was never killed: it passes no point")
    if failed:
        more = f"\n… and {len(failed) - MAX_SHOWN} more" if len(failed) > MAX_SHOWN else ""
        raise AssertionError(f"{len(failed)} of {len(kills)} kills:\n" + "\n".join(failed[:MAX_SHOWN]) + more)
    return CrashReport(result=whole.result, kills=tuple(kills), uncertain=uncertain)


def _program(
    workload: WorkloadFunction[SpecT, ResultT],
    spec: SpecT,
    agents: Agents | None,
    project: str | Path | None,
    budget_usd: str | None,
) -> Program:
    asked = declared(workload)
    return Program(
        path=[str(Path(folder).absolute()) for folder in sys.path],
        workload=asked.name,
        defined=_place(workload, "workload"),
        spec=asked.written(spec),
        agents=None if agents is None else (_place(agents, "agents"), agents.__name__),
        project=None if project is None else str(Path(project).resolve()),
        budget_usd=budget_usd,
    )


def _place(function: Callable[..., Any], argument: str) -> ModulePlace:
    function = inspect.unwrap(function)
    if "<locals>" in getattr(function, "__qualname__", "<locals>"):
        raise BadArgument("must be defined on the top level of a module: another process imports it", argument=argument)
    file = getattr(sys.modules.get(function.__module__), "__file__", None)
    if function.__module__ == "__main__" and file is not None:  # imported there as what it is, not to be run again
        return ModulePlace(module=Path(file).stem, file=str(Path(file).absolute()))
    return ModulePlace(module=function.__module__, file=None if file is None else str(Path(file).absolute()))


class TrialServer:
    """A process that trials are forked from."""

    def __init__(self, program: Program, seed: int) -> None:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(  # noqa: S603  # it is ours
            ["/usr/bin/env", f"PYTHONHASHSEED={seed}", sys.executable, "-m", "muster.testing.trials"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        self._tell(asdict(program))

    def load(self) -> None:
        """Wait until it has loaded the workload; raises AssertionError when it cannot."""
        if not self._answer():
            self._process.wait()
            self._errors.seek(0)
            raise AssertionError(f"the workload cannot be loaded in another process:\n{self._errors.read()[-3000:]}")

    def try_once(self, trial: Trial, *, keep: bool = False) -> Outcome:
        """Return what became of a trial; its folder is emptied, unless it is to be resumed there."""
        self._tell(asdict(trial))
        outcome = self._answer()
        if not outcome:
            died = -(self._process.wait() or 0)
            raise AssertionError(f"the process that trials are forked from died of signal {died}")
        if not keep:
            _forget(Path(trial.folder))
        return Outcome(**outcome)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _tell(self, value: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        with suppress(BrokenPipeError):  # it has ended, and does not answer
            self._process.stdin.write(json.dumps(value) + "\n")
            self._process.stdin.flush()

    def _answer(self) -> Mapping[str, Any]:
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        line = self._process.stdout.readline()
        found: Mapping[str, Any] = json.loads(line) if line else {}
        return found


@contextmanager
def _servers(program: Program) -> Iterator[tuple[TrialServer, TrialServer]]:
    """Start two processes with other hash seeds, which end with the block, or with this process."""
    with ExitStack() as stack:
        servers = [stack.enter_context(closing(TrialServer(program, seed))) for seed in (1, 2)]
        for server in servers:
            server.load()
        yield servers[0], servers[1]


def _forget(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _flaws(resumed: Outcome, whole: Outcome, check: Callable[[Json], object] | None, seconds: int) -> Iterator[str]:
    # Who loses a race may be unused too; but that needs no keys which a run without a kill does not have.
    strange = set(resumed.keys) - {*whole.keys, UnusedEntries.event}
    lost = sorted(strange.intersection(resumed.unused))
    if lost and (instead := sorted(strange - set(lost))):
        yield f"{lost[0]!r} was stored and not used, and {instead[0]!r} was done instead; {STABLE_KEYS}"
    if resumed.signal or resumed.error:
        yield _told(resumed, seconds)
    elif check is not None:
        try:
            check(resumed.result)
        except AssertionError as error:
            yield f"the result is refused: {error}"
    elif resumed.result != whole.result:
        yield f"the result is {_short(resumed.result)}, and {_short(whole.result)} without a kill"


def _told(outcome: Outcome, seconds: int) -> str:
    if outcome.signal == signal.SIGALRM:
        return f"it was not over after {seconds} seconds"
    return f"the process died of signal {outcome.signal}" if outcome.signal else outcome.error


def _short(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:300]
