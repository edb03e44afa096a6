"""`muster plan --exact` in a terminal and as JSON."""

from pathlib import Path

from tests.rehearsal import ForkedRehearsal
from tests.suites.stage import MODEL, a_case, a_suite

from .shell import Shell


def test_a_plan_tells_what_was_counted(tmp_path: Path, rehearsal: ForkedRehearsal) -> None:
    shell = Shell(tmp_path)
    shell.use(rehearsal)
    a_suite(tmp_path, a_case("one", "first words"))
    line = ["plan", "cases.yaml", "--agent", MODEL, "--agent", "sim/echo", "--exact"]
    told = " ".join(shell.muster(*line).out.split())
    assert f"{MODEL}: 1 first request with 3 input tokens" in told
    assert "counted by the provider with 1 free request" in told
    assert "sim/echo: 1 first request not counted, only estimated: no provider counts its tokens" in told
    found = shell.muster(*line, "--json").data()["exact"][MODEL]
    assert (found["calls_counted"], found["input_tokens"], found["calls_not_counted"]) == (1, 3, 0)
