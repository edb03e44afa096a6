"""The server as a process: what it prints, how it ends, and that it never stays behind."""

import json
import os
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from anthropic.types import TextBlock

from muster.testing.sim import RehearsalProcess
from tests.sim.batch_wire import members, request
from tests.sim.wire import message


def post(url: str) -> int:
    return send(url, message())


def send(url: str, body: Any) -> int:
    sent = urllib.request.Request(url, data=json.dumps(body).encode(), headers={"x-api-key": "k"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sent) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


async def test_a_process_serves_an_async_test() -> None:
    async with RehearsalProcess(script={"otherwise": "Scripted."}) as process:
        async with AsyncAnthropic(api_key="k", base_url=process.anthropic, max_retries=0) as client:
            reply = await client.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}]
            )
        audit = process.audit()
    assert [block.text for block in reply.content if isinstance(block, TextBlock)] == ["Scripted."]
    assert audit.calls == 1


def test_faults_are_changed_and_the_audit_reset() -> None:
    with RehearsalProcess(faults={"rates": {"500": 1}}) as process:
        url = f"{process.anthropic}/v1/messages"
        assert post(url) == 500
        process.faults({})
        assert post(url) == 200
        assert (process.audit().calls, process.audit().requests) == (1, 2)
        process.reset()
        assert process.audit().requests == 0
        with pytest.raises(urllib.error.HTTPError) as caught:
            process.faults({"rates": {"500": 7}})
        caught.value.close()
        assert post(f"{process.openai}/chat/completions") == 200


def test_options_reach_the_process() -> None:
    with RehearsalProcess(require_key="other", capacity=5, latency_ms=1) as process:
        assert post(f"{process.anthropic}/v1/messages") == 401


@pytest.mark.parametrize("live", [None, False, True])
def test_options_of_batches_reach_the_process(live: bool | None) -> None:
    with RehearsalProcess(batch_ms=1e9, batch_requests=2, batch_bytes=1000, live_counts=live) as process:
        url = f"{process.anthropic}/v1/messages/batches"
        assert send(url, members(2)) == 200
        assert send(url, members(3)) == 400
        assert send(url, {"requests": [request("large", "x" * 1000)]}) == 413
        [batch] = process.audit().batches
    assert batch["status"] == "in_progress"


def test_the_process_ends_with_the_block() -> None:
    with RehearsalProcess() as process:
        pid = process.pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    process.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    with start() as server:
        found = json.loads(first_line(server))
        assert set(found) == {"anthropic", "openai", "audit"}
        server.send_signal(number)
        assert server.wait() == 0


def test_the_end_of_its_input_ends_it() -> None:
    with start("--until-eof") as server:
        first_line(server)
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait() == 0


def test_it_does_not_outlive_a_parent_that_is_killed() -> None:
    program = (
        "from muster.testing.sim import RehearsalProcess as R; r = R(); r.start(); print(r.pid, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        pid = int(first_line(parent))
        handle = os.pidfd_open(pid)
        parent.kill()
        parent.wait()
    readable, _, _ = select.select([handle], [], [], 120)
    os.close(handle)
    assert readable == [handle]  # a pidfd is readable when its process has ended


def test_a_wrong_file_is_told_and_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("rates: {429: 7}")
    with start("--faults", str(path), errors=subprocess.PIPE) as server:
        _, told = server.communicate()
    assert server.returncode == 2
    assert b"faults.rates" in told


def start(*arguments: str, errors: int | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "muster.sim", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
    )


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()
