"""What docs/OPERATIONS.md and docs/compose.yaml tell is true: the sums are right, and every command exists."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

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
