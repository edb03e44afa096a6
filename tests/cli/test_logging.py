"""Log lines of `muster worker` and `muster pool start`, and `muster metrics`."""

import json
import subprocess
import sys
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from .shell import Shell


def lines_in(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_a_worker_logs_the_calls_of_its_runs_as_json_on_standard_error(shell: Shell) -> None:
    run = shell.submit("ask", {"agent": "sim/echo", "prompt": "hello"})
    result = shell.muster("worker", "--until-idle", "--quiet", "--log-format", "json", "--log-level", "debug")
    assert result.code == 0
    lines = lines_in(result.err)
    assert [line["event"] for line in lines] == [
        "run.began", "call.began", "attempt.began", "attempt.ended", "call.ended", "run.ended",
    ]  # fmt: skip
    assert all(line["run"] == run for line in lines)
    assert all(line["key"] == "ask" for line in lines if not line["event"].startswith("run."))
    assert "hello" not in result.err


def test_a_worker_appends_its_log_to_a_file(shell: Shell) -> None:
    run = shell.submit("ask", {"agent": "sim/echo", "prompt": "hello"})
    result = shell.muster("worker", "--until-idle", "--log-format", "text", "--log-file", "muster.log")
    assert result.code == 0
    began, ended = (shell.folder / "muster.log").read_text().splitlines()
    assert f"event=run.began run={run} " in began
    assert "state=completed" in ended
    assert "event=" not in result.err


def test_the_pool_logs_its_tasks(shell: Shell) -> None:
    shell.write("muster.toml", '[pool]\nslots = 1\nagent = "sim/echo"\n')
    assert shell.muster("task", "submit", "hello").code == 0
    result = shell.muster("pool", "start", "--until-idle", "--quiet", "--log-format", "json")
    assert result.code == 0
    began, ended = lines_in(result.err)
    assert (began["event"], began["workload"]) == ("run.began", "task")
    assert (ended["event"], ended["state"], ended["run"]) == ("run.ended", "completed", began["run"])


@pytest.mark.parametrize("option", [("--log-level", "debug"), ("--log-file", "muster.log")])
@pytest.mark.parametrize("command", [("worker",), ("pool", "start")])
def test_options_of_a_log_without_a_log_are_refused(
    shell: Shell, command: tuple[str, ...], option: tuple[str, str]
) -> None:
    result = shell.muster(*command, "--until-idle", *option)
    assert result.code == 2
    assert "add --log-format json" in result.err
    assert not (shell.folder / ".muster").exists()


def test_metrics_are_printed_as_prometheus_reads_them(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello")
    result = shell.muster("metrics")
    assert result.code == 0
    families = {family.name: family for family in text_string_to_metric_families(result.out)}
    (sample,) = families["muster_runs"].samples
    assert (sample.labels, sample.value) == ({"workload": "ask", "state": "completed"}, 1.0)
    assert shell.muster("metrics", "--json").data()["text"].startswith("# HELP muster_runs ")


def test_metrics_of_a_folder_without_a_store_make_none(shell: Shell) -> None:
    result = shell.muster("metrics")
    assert result.code == 0
    assert "muster_spent_usd" in result.out
    assert not (shell.folder / ".muster").exists()


def test_traces_that_cannot_be_sent_stop_a_command_before_anything_is_stored(shell: Shell) -> None:
    shell.variables["OTEL_TRACES_EXPORTER"] = "otlp"
    result = shell.muster("ask", "sim/echo", "hello")
    assert result.code == 3
    assert "pip install opentelemetry-exporter-otlp-proto-http" in result.err
    assert not (shell.folder / ".muster").exists()


LOADED = """
import sys
from muster.cli.main import run
run(["ask", "sim/echo", "hello"])
watching = ("structlog", "prometheus_client", "opentelemetry", "muster.observability")
print([name for name in sys.modules if name.startswith(watching)])
"""


def test_ordinary_commands_load_nothing_of_observability(shell: Shell) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=shell.folder, env=shell.environment, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["hello", "[]"]
