"""What docs/OPERATIONS.md and docs/compose.yaml tell is true: the sums are right, and every command exists."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.app.opening import open_queue
from muster.engine.queue.base import JobAnswer, QueuedJob
from muster.settings import load_settings
from tests.redis_server import running_redis

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docs" / "compose.yaml").read_text(encoding="utf-8"))
DAY = 10_000_000  # calls
PEAK, SECONDS, TEXTS = 4, 10, 4000
OURS = [name for name, one in COMPOSE["services"].items() if one.get("command", [""])[0] == "muster"]


def cells(column: str) -> dict[str, str]:
    """Return the last cell of each row of the sizing tables, or the second, by the first."""
    part = PAGE.partition("## Sizing\n")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
    return {row[0].strip("`"): row[1] if column == "value" else row[-1] for row in rows}


def test_the_sums_of_the_sizing_are_right() -> None:
    figures = {name: float(cells("value")[name]) for name in ("worker_ms", "server_ms", "row_bytes", "wal_bytes")}
    rate = DAY / 86_400
    needed = {
        "calls a second": f"{rate:.0f}",
        "calls a second at the peak": f"{rate * PEAK:.0f}",
        "calls on the wire at the peak": f"{rate * PEAK * SECONDS:,.0f}",
        "cores for workers": f"{rate * PEAK * figures['worker_ms'] / 1000:.1f}",
        "cores for PostgreSQL": f"{rate * PEAK * figures['server_ms'] / 1000:.1f}",
        "disk for a day, GB": f"{DAY * (figures['row_bytes'] + TEXTS) / 1e9:.0f}",
        "write-ahead log for a day, GB": f"{DAY * (figures['wal_bytes'] + TEXTS) / 1e9:.0f}",
        "connections with 4 workers and 2 servers": f"{6 * int(cells('value')['connections'])}",
    }
    told = cells("needed")
    assert {name: told[name] for name in needed} == needed


def test_the_compose_file_has_a_store_a_queue_a_server_and_workers() -> None:
    assert set(COMPOSE["services"]) == {"server", "worker", "postgres", "redis"}
    assert OURS == ["server", "worker"]
    for name in OURS:
        variables = COMPOSE["services"][name]["environment"]
        assert variables["MUSTER_DATABASE_URL"].startswith("postgresql://")
        assert variables["REDIS_URL"].startswith("redis://")
        assert set(COMPOSE["services"][name]["depends_on"]) == {"postgres", "redis"}


@pytest.mark.parametrize("name", sorted(COMPOSE["services"]))
def test_every_service_of_the_compose_file_is_checked_reaped_and_has_no_secret_on_its_command_line(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["init"]
    lines = [*service.get("command", ()), *service["healthcheck"]["test"]]
    assert not [line for line in lines if re.search(r"(?<!\$)\$\{?\w", line)], "compose would put the value there"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def shell(text: str) -> str:
    """Return a text of the compose file as the shell of a container gets it."""
    return text.replace("$$", "$")


def passes(test: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether a health check passes on this machine."""
    kind, *words = test
    command = ["sh", "-c", *map(shell, words)] if kind == "CMD-SHELL" else [sys.executable, *words[1:]]
    variables = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(command, env=variables, capture_output=True, timeout=60, check=False).returncode == 0


def test_redis_takes_its_password_from_the_environment_and_is_healthy_only_with_it(tmp_path: Path) -> None:
    service, port = COMPOSE["services"]["redis"], free_port()
    *words, line = map(shell, service["command"])
    begun = f"{line.replace('/tmp/redis.conf', str(tmp_path / 'redis.conf'))} --port {port} --dir {tmp_path}"
    variables = {"PATH": os.environ["PATH"], "REDISCLI_AUTH": "a secret"}
    test = [service["healthcheck"]["test"][0], service["healthcheck"]["test"][1].replace("ping", f"-p {port} ping")]
    with subprocess.Popen([*words, begun], env=variables, stdout=subprocess.DEVNULL) as redis:
        try:
            end = time.monotonic() + 30
            while not passes(test, variables):
                assert time.monotonic() < end
            assert not passes(test, {"REDISCLI_AUTH": "another"})
            assert not passes(test, {})
            assert "a secret" not in Path(f"/proc/{redis.pid}/cmdline").read_text()
        finally:
            redis.kill()


async def test_a_worker_is_healthy_while_redis_lists_it(tmp_path: Path) -> None:
    test = COMPOSE["services"]["worker"]["healthcheck"]["test"]
    with running_redis(tmp_path / "redis") as redis:
        assert not await asyncio.to_thread(passes, test, {"REDIS_URL": redis.url})
        queue = open_queue(load_settings(environment={"REDIS_URL": redis.url}))

        async def refuse(job: QueuedJob) -> JobAnswer:
            raise AssertionError

        await queue.listen(["runs"], 1, refuse)
        await queue.beat(["runs"])
        assert await asyncio.to_thread(passes, test, {"REDIS_URL": redis.url})
        await queue.close()
        assert not await asyncio.to_thread(passes, test, {"REDIS_URL": redis.url})


@pytest.mark.parametrize("name", OURS)
def test_what_is_beside_the_compose_file_is_where_commands_begin(name: str, tmp_path: Path) -> None:
    service = COMPOSE["services"][name]
    folders = dict(volume.split(":")[:2][::-1] for volume in service["volumes"])
    assert (tmp_path / folders[service["working_dir"]]).resolve() == tmp_path.resolve()


@pytest.mark.parametrize("name", OURS)
def test_the_commands_of_the_compose_file_exist(name: str) -> None:
    _, command, *words = COMPOSE["services"][name]["command"]
    done = subprocess.run(
        [sys.executable, "-m", "muster", command, "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    options = {word for word in words if word.startswith("--")}
    assert options
    assert options <= set(re.findall(r"--[\w-]+", done.stdout))
