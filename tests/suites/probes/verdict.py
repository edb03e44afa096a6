"""What `muster run` makes of a folder of suites and a file of recorded answers.

All probes are decided in this process and without a store, by what a run is made of, which takes milliseconds. Whether
the command says the same is asked for some of them, in a process each.
"""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from muster.domain.case import Status
from muster.domain.errors import MusterError
from muster.engine.context import Context
from muster.suites.cases import CaseReader, Units
from muster.suites.recorded import read_answers
from muster.suites.spec import read_spec
from muster.suites.statistics import settle
from muster.suites.values.rules import CURRENT_RULES
from muster.suites.workload import examine
from tests import forkserver

NO_CONTEXT = cast(Context, None)  # recorded answers are scored without one
SAID = "hello"
PATIENCE = 100.0
SUITES, ANSWERS = "suites", "answers.json"
FLAGS = {"filter": "--filter", "tags": "--tags", "epochs": "--epochs", "judge": "--judge"}  # by the name in the spec


def a_case(name: str = "good", **changes: Any) -> dict[str, Any]:
    """Make a case that passes when `SAID` is recorded for it."""
    asked = {"messages": [{"role": "user", "content": "hi"}]}
    checks = {"output": [{"kind": "contains", "value": SAID}]}
    return {"id": f"s/{name}", "tags": ["smoke"], "input": asked, "expected": checks} | changes


def a_suite(*cases: Any, **head: Any) -> str:
    """Spell a suite: JSON, which is YAML."""
    return json.dumps({"schema_version": 1, "skill_or_agent": "s", **head, "cases": list(cases)})


def answers(said: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return recorded answers by case, or by case, epoch and turn with spaces between."""
    found = []
    for place, text in said.items():
        case, *numbers = place.split(" ")
        more = dict(zip(("epoch", "turn"), map(int, numbers), strict=False))
        found.append({"tool": "agent_response", "args_match": {"case_id": case} | more, "response": {"content": text}})
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One thing that must not pass, with what is sound around it."""

    name: str
    files: Mapping[str, str | bytes]
    said: Any = field(default_factory=lambda: answers({"s/good": SAID, "s/bad": SAID, "s/other": SAID}))
    options: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Path], object] | None = None

    @property
    def is_for_the_command(self) -> bool:
        """Return whether the command has flags for all its options."""
        return set(self.options) <= set(FLAGS)

    def command(self, place: Path) -> list[str]:
        """Return the words of the command that runs it."""
        words = ["run", str(place / SUITES), "--replay", str(place / ANSWERS)]
        for name, value in self.options.items():
            words += [FLAGS[name], ",".join(value) if isinstance(value, list) else str(value)]
        return words


def write(folder: Path, probe: Probe) -> tuple[Path, Path]:
    """Write the files of a probe, and return where its suites and its recorded answers are."""
    suites = folder / SUITES
    for name, text in probe.files.items():
        path = suites / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if probe.prepare is not None:
        probe.prepare(suites)
    recorded = folder / ANSWERS
    recorded.write_text(probe.said if isinstance(probe.said, str) else json.dumps(probe.said), encoding="utf-8")
    return suites, recorded


def passes(folder: Path, probe: Probe) -> bool:
    """Return whether the run of a probe would exit with 0: cases were run, and all of them passed."""
    suites, recorded = write(folder, probe)
    try:
        return asyncio.run(_ended(suites, recorded, probe.options)) == {Status.PASSED}
    except MusterError as error:
        return error.exit_code == 0


async def _ended(suites: Path, recorded: Path, options: Mapping[str, Any]) -> set[Status]:
    spec = read_spec({"path": [str(suites)], "answers": str(recorded), **options})
    known = read_answers(recorded, epochs=spec.epochs)
    reading = CaseReader(spec)
    units = Units(spec, reading.outline())
    ended: defaultdict[str, list[Status]] = defaultdict(list)
    for case in reading.cases():
        for unit in units.of(case):
            ended[case.id].append((await examine(NO_CONTEXT, unit, spec, known, CURRENT_RULES)).status)
    return {settle(statuses) for statuses in ended.values()} - {Status.SKIPPED}


def unchecked(folder: Path, probes: Sequence[Probe]) -> list[str]:
    """Return the names of the probes that pass."""
    return list(_unchecked(folder, probes))


def _unchecked(folder: Path, probes: Sequence[Probe]) -> Iterator[str]:
    for number, probe in enumerate(probes):
        here = folder / str(number)
        here.mkdir()
        if passes(here, probe):
            yield probe.name


def exits_with_0(project: Path, probes: Sequence[Probe]) -> list[str]:
    """Return the names of the probes for which the command exits with 0, each in a folder of one project."""
    return [probe.name for number, probe in enumerate(probes) if _exit_code(project, Path(str(number)), probe) == 0]


def _exit_code(project: Path, place: Path, probe: Probe) -> int:
    (project / place).mkdir()
    write(project / place, probe)
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(project)}
    done = forkserver.run("muster", probe.command(place), folder=project, environment=environment, timeout=PATIENCE)
    assert done.returncode >= 0, done
    assert b"Traceback" not in done.stderr, done
    return done.returncode
