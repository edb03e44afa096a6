"""schemathesis over /openapi.json: no 5xx, no undocumented status or body, in a bounded run."""

import subprocess
import sys
from pathlib import Path

import pytest

from .server import SETTINGS, Project

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
STARTS = {"start ask", "start suite", "start chain", "start council", "submit task", "start battle"}
WAITS = "/api/pool/drain"  # for as long as it is told to


# The second one is for whoever has the time; the seed is fixed, so that a failure comes again.
@pytest.mark.parametrize("examples", [1, pytest.param(25, marks=pytest.mark.chaos)])
def test_the_server_answers_whatever_is_sent_as_its_schema_says(
    project: Project, tmp_path: Path, examples: int
) -> None:
    project.declare('[pool]\nagent = "sim/echo"\n', SETTINGS)
    command = [sys.executable, "-m", "schemathesis.cli", "run", "--phases", "examples,fuzzing"]
    options = ["--checks", CHECKS, "--exclude-path", WAITS, "--seed", "7", "--workers", "1", "--no-shrink"]
    options += ["--max-examples", str(examples)]
    quiet = ["--warnings", "off", "--no-color", "--generation-database", "none"]
    with project.serve() as server:
        done = subprocess.run(
            [*command, *options, *quiet, f"{server.url}/openapi.json"],
            cwd=tmp_path,
            env=project.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
        assert server.get("/healthz").status == 200
        done_to = {record["action"]: record for record in server.get("/api/audit?limit=500").json["records"]}
        assert set(done_to) >= STARTS | {"cancel", "delete"}  # with ids that starts had returned
