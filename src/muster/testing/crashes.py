"""`kill_everywhere`: a workload is killed at every point, resumed, and must come to the same."""

import inspect
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from muster.app.agent_kinds.given import GivenAgent
from muster.domain.canonical import Json
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
MOST_SHOWN = 10
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

    Each trial is a process with a store of its own. At the end the result must be that of a run that was not killed, or
    whatever `check` accepts, which gets it as it is stored, and the laws of money and of work hold; else AssertionError
    says where it was killed. `agents` is a function on the top level of a module that returns them as
    `muster.open(agents=…)` takes them, and the workload is defined on the top level of one too. A trial that takes
    more than `seconds` has failed.
    """
    program = _program(workload, spec, agents, project, budget_usd)
    with memory_folder() as folder, _server(program) as server:
        whole = _trial(server, folder, None, seconds)
        if whole.signal or whole.error:
            raise AssertionError(f"without a kill: {_told(whole, seconds)}")
        if check is not None:
            check(whole.result)
        kills, failed, uncertain = list[str](), list[str](), 0
        for point in POINTS:
            for number in count(1):
                crash = f"{point}:{number}"
                killed = _trial(server, folder, (point, number), seconds, keep=True)
                if killed.signal != signal.SIGKILL:
                    failed += [f"{crash}: {_told(killed, seconds)}"] if killed.signal or killed.error else []
                    _forget(folder)
                    break  # it is not passed so often
                kills.append(crash)
                resumed = _trial(server, folder, None, seconds)
                uncertain += resumed.uncertain
                failed += [f"killed at {crash}: {flaw}" for flaw in _flaws(resumed, whole, check, seconds)]
        if not kills:
            raise AssertionError("the run was never killed: it passes no point")
    if failed:
        more = f"\n… and {len(failed) - MOST_SHOWN} more" if len(failed) > MOST_SHOWN else ""
        raise AssertionError(f"{len(failed)} of {len(kills)} kills:\n" + "\n".join(failed[:MOST_SHOWN]) + more)
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


@contextmanager
def _server(program: Program) -> Iterator["subprocess.Popen[str]"]:
    """Start the process that trials are forked from, which ends with the block, or with this process."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        server = subprocess.Popen(
            [sys.executable, "-m", "muster.testing.trials"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
        )
        try:
            if not _asked(server, asdict(program)):
                server.wait()
                errors.seek(0)
                raise AssertionError(f"the workload cannot be loaded in another process:\n{errors.read()[-3000:]}")
            yield server
        finally:
            server.kill()
            server.communicate()


def _asked(server: "subprocess.Popen[str]", value: Mapping[str, Any]) -> Mapping[str, Any]:
    assert server.stdin is not None and server.stdout is not None  # noqa: S101, PT018  # both are pipes
    try:
        server.stdin.write(json.dumps(value) + "\n")
        server.stdin.flush()
    except BrokenPipeError:
        return {}
    line = server.stdout.readline()
    found: Mapping[str, Any] = json.loads(line) if line else {}
    return found


def _trial(
    server: "subprocess.Popen[str]", folder: Path, crash: tuple[str, int] | None, seconds: int, *, keep: bool = False
) -> Outcome:
    told = _asked(server, asdict(Trial(folder=str(folder), crash=crash, seconds=seconds)))
    if not told:
        raise AssertionError(f"the process that trials are forked from died of signal {-(server.wait() or 0)}")
    if not keep:
        _forget(folder)
    return Outcome(**told)


def _forget(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _flaws(resumed: Outcome, whole: Outcome, check: Callable[[Json], object] | None, seconds: int) -> Iterator[str]:
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
