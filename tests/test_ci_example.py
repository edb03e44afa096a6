"""The workflow in examples/ci does what it says: its commands are run in order, with `muster` on PATH, as in CI."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from . import forkserver

ROOT = Path(__file__).parent.parent
WORKFLOW: Mapping[str, Any] = yaml.safe_load((ROOT / "examples/ci/muster.yml").read_text(encoding="utf-8"))
SUITE = ROOT / "examples/suites/order-desk"
AGENTS = "\n".join(
    f'[agents.{name}]\nkind = "scripted"\nscript = "suites/order-desk/{name}.yaml"\n' for name in ("clerk", "hasty")
)


class Machine:
    """A machine of CI: a checkout, `muster` on PATH, and steps that are run as GitHub does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary = folder / "summary-of-the-job.md"
        shutil.copytree(SUITE, folder / "suites/order-desk", ignore=shutil.ignore_patterns(".muster"))
        (folder / "muster.toml").write_text(AGENTS)
        forkserver.install(folder / "bin")

    def run(self, job: str, inputs: Mapping[str, str] | None = None) -> dict[str, int]:
        """Run the commands of a job; gives the exit codes of its steps. After a failure only those with `if` run."""
        shutil.rmtree(self.folder / ".muster", ignore_errors=True)  # CI machines forget
        found = WORKFLOW["jobs"][job]
        codes: dict[str, int] = {}
        for step in found["steps"]:
            skipped = "run" not in step or "pip install" in step["run"]
            if skipped or (any(codes.values()) and "if" not in step):
                continue
            variables = {**found.get("env", {}), **step.get("env", {})}
            codes[step["name"]] = self._step(
                step["run"], {name: _given(text, inputs) for name, text in variables.items()}
            )
        return codes

    def _step(self, script: str, variables: Mapping[str, str]) -> int:
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "HOME": str(self.folder),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            **variables,
        }
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=200
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    def record(self, agent: str) -> dict[str, int]:
        """Run the job that asks for real; here a script stands for the model. Afterwards it says something else."""
        script = self.folder / "suites/order-desk" / f"{agent}.yaml"
        codes = self.run("record", {"agent": agent, "judge": agent, "budget": "2.00"})
        script.write_text("otherwise: nobody was to be asked")
        return codes

    def keep_as_baseline(self) -> None:
        shutil.copy(self.folder / "recorded/cassette.jsonl.gz", self.folder / "recorded/baseline.jsonl.gz")


def _given(text: str, inputs: Mapping[str, str] | None) -> str:
    """Put in what GitHub would; secrets are empty here."""
    return re.sub(
        r"\$\{\{ *(\w+)\.(\w+) *\}\}", lambda m: (inputs or {}).get(m[2], "") if m[1] == "inputs" else "", text
    )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_was_recorded_is_replayed_compared_and_reported(machine: Machine) -> None:
    assert set(machine.record("clerk").values()) == {0}
    machine.keep_as_baseline()
    codes = machine.run("replay")
    assert len(codes) == 4
    assert set(codes.values()) == {0}
    reports = machine.folder / "reports"
    assert ElementTree.parse(reports / "junit.xml").getroot().get("tests") == "5"
    assert json.loads((reports / "muster.sarif").read_text())["version"] == "2.1.0"
    assert "order-desk/refund-in-order" in (reports / "report.html").read_text(encoding="utf-8")
    summary = machine.summary.read_text(encoding="utf-8")
    assert "All 5 cases passed." in summary
    assert "5 cases compared, 0 regressed, 0 improved" in summary

    (machine.folder / "suites/order-desk/prompt.md").write_text("Be rude.")  # nobody has answered that
    assert list(machine.run("replay").values())[:2] == [0, 1]


def test_a_worse_agent_fails_the_job_and_everything_is_still_reported(machine: Machine) -> None:
    machine.record("clerk")
    machine.keep_as_baseline()
    recorded = machine.record("hasty")
    assert list(recorded.values()) == [0, 1, 0]  # it did not pass, and its answers are kept
    machine.summary.unlink()
    assert list(machine.run("replay").values()) == [0, 1, 6, 0]  # five cases can hardly show a drop
    assert "4 of 5 cases did not pass" in machine.summary.read_text(encoding="utf-8")


def test_no_text_of_a_stranger_is_put_into_a_command() -> None:
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]
