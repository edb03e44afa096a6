"""Who can be looked at from here, and who is certainly dead: decided by host, boot, PID namespace and start."""

import os
import resource
import secrets
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from muster.agents.processes import system
from muster.agents.processes.system import ProcessStart, is_gone, sees, start_of, this_process, working_in
from muster.domain.run import Driver

US = this_process()
BIRTH = start_of(US.started)


def written(boot: str = BIRTH.boot, tick: str = "1", namespace: str | None = BIRTH.namespace) -> Driver:
    """Make a driver with the number of this process that started at another time."""
    return replace(US, started="/".join(part for part in (boot, tick, namespace) if part))


def test_the_start_of_a_driver_names_boot_tick_and_namespace() -> None:
    assert ProcessStart(boot=BIRTH.boot, tick=BIRTH.tick, namespace=str(os.stat("/proc/self/ns/pid").st_ino)) == BIRTH  # noqa: PTH116
    assert BIRTH.tick.isdecimal()
    assert start_of("b/1") == ProcessStart(boot="b", tick="1")
    assert start_of("unknown") == ProcessStart(boot="unknown", tick="")


def test_this_process_is_seen_and_alive() -> None:
    assert sees(US, US)
    assert not is_gone(US, US)


def test_an_earlier_process_of_this_namespace_is_gone_and_a_later_owner_of_its_number_is_not_taken_for_it() -> None:
    assert sees(written(), US)
    assert is_gone(written(), US)


def test_a_living_process_of_this_namespace_is_not_gone_until_it_has_ended() -> None:
    script = "from muster.agents.processes.system import this_process as p; print(p().started, flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        driver = replace(US, pid=child.pid, started=child.stdout.readline().strip())
        assert sees(driver, US)
        assert not is_gone(driver, US)
        child.kill()
    assert is_gone(driver, US)


@pytest.mark.parametrize(
    "driver",
    [
        written(namespace="1"),
        written(boot="another"),
        written(namespace=None),  # written by an older version
        replace(written(), host="elsewhere"),
        replace(written(), started="unknown"),
    ],
    ids=["another namespace", "another boot", "no namespace", "another host", "no start"],
)
def test_nobody_is_taken_for_dead_who_cannot_be_looked_at(driver: Driver) -> None:
    assert not sees(driver, US)
    assert not is_gone(driver, US)


@pytest.mark.parametrize("started", ["unknown", "boot/1"])
def test_where_the_system_knows_no_namespaces_the_host_decides(started: str) -> None:
    us = Driver(host="here", pid=os.getpid(), started=started)
    other = Driver(host="here", pid=2**22 + 1, started=started)  # more than any system gives
    assert sees(other, us)
    assert is_gone(other, us)
    assert not sees(replace(other, host="there"), us)
    assert not is_gone(replace(other, host="there"), us)


def test_processes_are_found_by_the_folder_they_work_in(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "belows").mkdir()
    with subprocess.Popen(["cat"], cwd=tmp_path / "below", stdin=subprocess.PIPE) as child:
        assert list(working_in(tmp_path)) == [child.pid]
        assert list(working_in(tmp_path / "below")) == [child.pid]
        assert list(working_in(tmp_path / "belows")) == []
    assert list(working_in(tmp_path)) == []


def test_a_name_is_held_until_it_is_closed_and_without_free_files_nobody_is_taken_for_its_holder() -> None:
    token = f"muster-{secrets.token_hex(8)}"
    name = system.hold(token)
    assert name is not None
    assert (system.is_held(token), system.hold(token)) == (True, None)
    name.close()
    assert not system.is_held(token)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        assert (system.hold(token), system.is_held(token)) == (None, False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_inside_execve_is_noticed() -> None:
    since, seen = int(start_of(this_process().started).tick), False
    while not seen:  # it is for a moment only: about every second one is caught at it
        pid = os.posix_spawn("/bin/true", ["true"], {"A": "b"})
        while not seen and system.started(pid) is not None:
            seen = system.is_executing(pid)
        os.waitpid(pid, 0)
    with subprocess.Popen(["sleep", "60"], env={}) as process:
        while system.is_executing(process.pid) or system.any_executing(since):
            pass  # others may begin at any time; one without an environment is not taken for one of them
        process.kill()
