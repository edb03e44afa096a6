"""schemathesis over /openapi.json: no 5xx, no undocumented status or body, in a bounded run."""

import subprocess
import sys
from pathlib import Path

from .server import SETTINGS, Project

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES = 4  # for each route
WAITS = "/api/pool/drain"  # for as long as it is told to


def test_the_server_answers_whatever_is_sent_as_its_schema_says(project: Project, tmp_path: Path) -> None:
    project.declare('[pool]\nagent = "sim/echo"\n', SETTINGS)
    command = [sys.executable, "-m", "schemathesis.cli", "run", "--phases", "fuzzing", "--max-examples", str(EXAMPLES)]
    options = ["--checks", CHECKS, "--exclude-path", WAITS, "--seed", "7", "--warnings", "off", "--no-color"]
    with project.serve() as server:
        done = subprocess.run(
            [*command, *options, f"{server.url}/openapi.json"],
            cwd=tmp_path,
            env=project.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-10_000:]
        assert server.get("/healthz").status == 200
