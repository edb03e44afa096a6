"""`muster verify` on a part of Muster's own source, with the real ruff and the real mypy."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).parent.parent.parent
SCHEMA = ROOT / "tests/suites/reports/sarif_schema.json"
TOOLS = Path(sys.executable).parent


def declare(folder: Path, *commands: Sequence[str]) -> Path:
    """Declare a checker for each command."""
    agents = [{"name": command[0], "kind": "command", "command": [*command, "{files}"]} for command in commands]
    path = folder / "verify.yaml"
    path.write_text(json.dumps({"agents": agents}))
    return path


def verify(folder: Path, agents: Path, report: Path) -> dict[str, Any]:
    """Verify two files, and give the envelope."""
    files = ["src/muster/domain/money.py", "src/muster/domain/errors/base.py"]
    options = ["--agents", str(agents), "--home", str(folder / "home"), "--report", f"sarif={report}", "--json"]
    environment = {"PATH": f"{TOOLS}:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(folder)}
    command = [sys.executable, "-m", "muster", "verify", *files, *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, timeout=400)
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if found["ok"] else 1)
    return found


@pytest.mark.chaos
def test_real_checkers_look_at_our_own_source_and_the_sarif_report_is_sound(tmp_path: Path) -> None:
    report = tmp_path / "report.sarif"
    ruff = ("ruff", "check", "--output-format", "json")
    mypy = ("mypy", f"--cache-dir={tmp_path / 'cache'}", "--follow-imports=skip")
    assert verify(tmp_path, declare(tmp_path, ruff, mypy), report)["ok"]
    lines_of_60 = (*ruff, "--isolated", "--select", "E501", "--line-length", "60")
    strict = verify(tmp_path, declare(tmp_path, lines_of_60), report)
    assert [agent["ending"] for agent in strict["data"]["waves"][0]["agents"]] == ["passed"]  # long lines are low
    sarif = json.loads(report.read_text(encoding="utf-8"))
    jsonschema.validate(sarif, json.loads(SCHEMA.read_text(encoding="utf-8")), cls=jsonschema.Draft202012Validator)
    places = [result["locations"][0]["physicalLocation"] for result in sarif["runs"][0]["results"]]
    assert len(places) > 5
    for place in places:
        lines = (ROOT / place["artifactLocation"]["uri"]).read_text(encoding="utf-8").splitlines()
        assert len(lines[place["region"]["startLine"] - 1]) > 60
