"""What docs/REHEARSAL.md tells is true: its commands run in their order, and no fault, field or option is left out."""

import json
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, chdir, suppress
from pathlib import Path

import msgspec
import pytest

from muster.agents.scripted import BEHAVIORS
from muster.cli.main import run
from muster.domain.call import Stop
from muster.sim import files
from muster.sim.faults import FaultKind, Op
from tests.test_suite_docs import statements

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "REHEARSAL.md").read_text(encoding="utf-8")
PORT = "8766"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in; signals are afterwards as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setenv("REHEARSAL_KEY", "anything")
    with chdir(tmp_path):
        yield tmp_path
    for number, handler in before.items():
        signal.signal(number, handler)


def script() -> str:
    """Return all that is to be typed, with a port that is free."""
    return "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).replace(PORT, str(free_port()))


def free_port() -> int:
    """Return a port below those that the system gives to whoever asks for any: nobody takes it meanwhile."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def server(stack: ExitStack, words: list[str]) -> subprocess.Popen[bytes]:
    """Start a server and wait for the line with its addresses."""
    process = subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.PIPE)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    assert set(json.loads(process.stdout.readline())) == {"anthropic", "openai", "audit"}
    stack.callback(process.stdout.close)
    return process


def test_the_commands_run_in_their_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers, audit = [], {}
    with ExitStack() as stack:
        for statement in statements(script()):
            words = shlex.split(statement, comments=True) if "<<" not in statement else []
            if words[-1:] == ["&"]:
                server(stack, words[:-1])
            elif words[:1] == ["muster"]:
                assert run(words[1:]) == 0, (statement, capsys.readouterr())
                answers.append(capsys.readouterr().out)
            elif words[:1] == ["curl"]:
                with urllib.request.urlopen(words[-1], timeout=60) as answer:
                    audit = json.load(answer)
            elif words[:1] != ["export"]:
                subprocess.run(["bash", "-e", "-c", statement], cwd=folder, check=True)
    said = ["hello", "hello", "It is sunny in Bern.", "You said: hello", "It is sunny in Bern.", "It is sunny in Bern."]
    assert [words in answer for words, answer in zip(said, answers, strict=True)] == [True] * len(said), answers
    assert (audit["calls"], audit["faults"]) == (2, {"429": 1})


def told(names: object) -> set[str]:
    return {str(name) for name in names if not re.search(rf"`[^`\n]*\b{re.escape(str(name))}\b[^`\n]*`", PAGE)}  # type: ignore[attr-defined]


def test_every_agent_fault_operation_stop_and_field_is_told() -> None:
    assert told(f"sim/{name}" for name in BEHAVIORS) == set()
    assert told([*FaultKind, *Op, *Stop]) == set()
    for form in (files._ScriptRule, files._Answer, files._ToolUse, files._ScriptedFault, files._Faults):
        assert told(field.name for field in msgspec.structs.fields(form)) == set(), form


def test_every_option_of_the_server_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    run(["sim", "--help"])
    options = set(re.findall(r"^ +(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert {one for one in options if one not in PAGE} - {"--json", "--home", "--help", "--quiet"} == set()
    for target in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
