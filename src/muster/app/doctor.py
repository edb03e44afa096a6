"""Everything that a run needs, checked: Python, settings, keys, workloads, store, clock, agents, queue and network."""

import asyncio
import errno
import os
import shutil
import socket
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from muster.app.base.stores import load_postgres
from muster.app.base.workloads import project_workloads
from muster.app.opening import open_muster, open_queue
from muster.app.project.diagnosis import Diagnosis, DoctorReport, NetworkDiagnosis
from muster.domain.batch import BatchState, ways_out
from muster.domain.errors import BadConfiguration, MusterError
from muster.domain.network import CERTIFICATE_DIR, CERTIFICATE_FILE, Network, Proxy
from muster.domain.provider import PROVIDERS
from muster.settings import CONFIG_FILE, SECRET_VARIABLES, Settings, load_settings
from muster.settings.sections import key_variable

if TYPE_CHECKING:
    from muster.app.muster import Muster
    from muster.settings.sections import AgentSection

OLDEST_PYTHON = (3, 11)
PLAUSIBLE = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
SLACK_SECONDS = 60.0
ROOM = 131_072  # bytes that must fit on the disk of the home
PROXY_SECONDS = 3.0  # for a proxy to take a connection
STAND_IN = "a-key-that-is-never-sent"


async def examine(home: str | Path | None = None) -> DoctorReport:
    """Make every check that can be made."""
    try:
        settings = load_settings(None if home is None else Path(home))
    except MusterError as error:
        return DoctorReport(findings=[_python(), _broken("settings", error)])
    return DoctorReport(findings=await _findings(settings), network=await _network(settings.network))


async def _findings(settings: Settings) -> list[Diagnosis]:
    found = [_python()]
    file = settings.folder / CONFIG_FILE
    found.append(_ok("settings", f"{file} is valid" if file.exists() else f"no {CONFIG_FILE}; it is optional"))
    writable = _home(settings)
    found += [writable, *_keys(settings), *_workloads(settings)]
    if writable.state == "ok" or settings.has_store:
        found += await _with_store(settings)
    if settings.redis_url is not None:
        found.append(await _queue(settings))
    return found


async def _queue(settings: Settings) -> Diagnosis:
    """Ask the server of REDIS_URL who it is."""
    try:
        queue = open_queue(settings)
        try:
            server = await queue.server()
        finally:
            await queue.close()
    except MusterError as error:
        return _broken("queue", error)
    words = f"the Redis server of REDIS_URL answers: version {server.version or 'unknown'}"
    if server.may_lose_jobs:
        suggestions = ("set maxmemory-policy of Redis to noeviction",)
        words += f", maxmemory-policy {server.eviction}: it may throw jobs away when its memory is full"
        return Diagnosis(subject="queue", state="note", words=words, suggestions=suggestions)
    return _ok("queue", words)


def _python() -> Diagnosis:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST_PYTHON:
        return Diagnosis(subject="python", state="broken", words=f"{version} is too old", suggestions=("use 3.11",))
    return _ok("python", version)


def _home(settings: Settings) -> Diagnosis:
    try:
        with tempfile.TemporaryFile(dir=_existing(settings.home)) as file:  # to look is no reason to make it
            file.write(bytes(ROOM))  # a full disk still takes an empty file
            file.flush()
            return _ok("home", f"{settings.home} can be written")
    except OSError as error:
        words = f"{settings.home} cannot be written: {error.strerror}"
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some space on its disk" if full else "choose another folder with --home"
        return Diagnosis(subject="home", state="broken", words=words, suggestions=(remedy,))


def _is_there(path: str) -> bool:
    return Path(path).exists()


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    whole = folder.absolute()
    return next((one for one in (whole, *whole.parents) if one.exists()), whole)


# Those that are missed when they are not set; others are told when they are.
USUAL_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")


def _keys(settings: Settings) -> list[Diagnosis]:
    named = {name for section in settings.agents.values() if (name := key_variable(section))}
    told = named.union(USUAL_KEYS, filter(settings.variable, SECRET_VARIABLES))
    return [
        _ok("key", f"{name} is set")
        if settings.variable(name)
        else Diagnosis(subject="key", state="note", words=f"{name} is not set")
        for name in sorted(told)
    ]


def _workloads(settings: Settings) -> list[Diagnosis]:
    """Import every module that is named, each for itself: one that is broken hides no other."""
    found = [_workload(settings, module) for module in settings.imports]
    return found or [_ok("workloads", "only the built-in ones")]


def _workload(settings: Settings, module: str) -> Diagnosis:
    try:
        project_workloads(settings).import_one(module)
    except MusterError as error:
        return _broken("workloads", error)
    return _ok("workloads", f"{module} can be imported")


async def _network(network: Network) -> NetworkDiagnosis:
    chosen = {"https": network.proxies.https, "http": network.proxies.http}
    unusable = [_broken("network", proxy) for proxy in chosen.values() if isinstance(proxy, BadConfiguration)]
    proxies = {scheme: proxy for scheme, proxy in chosen.items() if isinstance(proxy, Proxy)}
    silent = [found for proxy in dict.fromkeys(proxies.values()) if (found := await _unreachable(proxy))]
    certificates, trust = _certificates(network)
    worst = next((found for found in (*unusable, *silent, trust) if found.state != "ok"), None)
    way = [f"{scheme} goes through {proxy.place} ({proxy.variable})" for scheme, proxy in proxies.items()]
    if way and network.no_proxy:
        way.append(f"except {network.no_proxy}")
    return NetworkDiagnosis(
        subject="network",
        state="ok" if worst is None else worst.state,
        words=f"{', '.join(way) or 'no proxy is set'}; {trust.words}" if worst is None else worst.words,
        suggestions=() if worst is None else worst.suggestions,
        proxies={scheme: proxies[scheme].place if scheme in proxies else None for scheme in chosen},
        direct=tuple(network.no_proxy.replace(",", " ").split()),
        certificates=certificates,
    )


async def _unreachable(proxy: Proxy) -> Diagnosis | None:
    """Return what is wrong with a proxy that takes no connections; None when it takes one."""
    try:
        async with asyncio.timeout(PROXY_SECONDS):
            _, writer = await asyncio.open_connection(proxy.host, proxy.port)
    except ConnectionRefusedError:
        why = "refuses connections"
    except socket.gaierror:
        why = "has an unknown host name"
    except TimeoutError:
        why = f"does not answer within {PROXY_SECONDS:g} seconds"
    except OSError as error:
        why = f"cannot be reached: {error.strerror or error}"
    else:
        writer.close()
        return None
    words = f"the proxy {proxy.place} ({proxy.variable}) {why}"
    remedy = f"start it, correct {proxy.variable}, or unset {proxy.variable}"
    return Diagnosis(subject="network", state="broken", words=words, suggestions=(remedy,))


def _certificates(network: Network) -> tuple[tuple[str, ...], Diagnosis]:
    """Return where the trusted certificates are, and whether they can be read."""
    from muster.agents.http.tls import make_context, trust_store

    named = {CERTIFICATE_FILE: network.certificate_file, CERTIFICATE_DIR: network.certificate_dir}
    shown = " and ".join(f"{place} ({variable})" for variable, place in named.items() if place)
    try:
        make_context(network)
        store = trust_store(network)
    except BadConfiguration as error:
        broken = _broken("network", error)
        # Where the system has none, everything on this machine can still be asked.
        return (), broken if shown else replace(broken, state="note")
    places = tuple(place for place in (store.file, store.folders) if place)
    return places, _ok("network", f"certificates: {shown or f'those of the system, {places[0]}'}")


async def _with_store(settings: Settings) -> list[Diagnosis]:
    """Check what needs an open store; agents get stand-ins for missing keys, so that all else is checked too."""
    missing = {name for section in settings.agents.values() if (name := _key_of(section))}
    unset = {name for name in missing if not settings.variable(name)}
    variables = {**settings.variables, **dict.fromkeys(unset, STAND_IN)}
    opened = replace(settings, imports=(), variables=variables)
    try:
        unmade = await _unmade(settings)
        if unmade is not None:
            opened = replace(opened, database_url=None)  # to look is no reason to make tables
        async with open_muster(settings=opened, create=False) as muster:
            found = [unmade or await _store(muster)]
            if unmade is None:
                found += [await _batches(muster), await _clock(muster)]
            return [*found, *(_agent(muster, settings, name) for name in sorted(settings.agents))]
    except MusterError as error:
        return [_broken("store", error)]


async def _unmade(settings: Settings) -> Diagnosis | None:
    """Return what is to be said of a database whose tables the next run makes, or changes; None for another store."""
    if settings.database_url is None:
        return None
    found = await asyncio.to_thread(load_postgres().look_at_database, settings.database_url)
    if found.version >= found.newest:
        return None
    tables = f"has tables of version {found.version}" if found.version else "has no tables yet"
    words = f"{found.place} {tables} (PostgreSQL {found.server}); the first run makes those of version {found.newest}"
    return _ok("store", words)


async def _store(muster: "Muster") -> Diagnosis:
    info = await muster.store.info()
    if "postgresql" in info:
        size = f"{info['bytes']:,} bytes, version {info['version']}"
        return _ok("store", f"{info['path']} can be used: {size}, PostgreSQL {info['postgresql']}")
    if not _is_there(info["path"]):
        return _ok("store", f"none yet at {info['path']}; the first run creates it")
    if info["check"] != "ok":
        words = f"{info['path']} is damaged: {info['check']}"
        return Diagnosis(subject="store", state="broken", words=words, suggestions=("restore it from a backup",))
    return _ok("store", f"{info['path']} is valid: {info['bytes']:,} bytes, version {info['version']}")


async def _batches(muster: "Muster") -> Diagnosis:
    under_way = await muster.batches.under_way()
    unclear = sum(batch.state is BatchState.SENT for batch in under_way)
    if unclear:
        words = f"{unclear} of {len(under_way)} in progress may have been created"
        return Diagnosis(subject="batches", state="note", words=words, suggestions=("muster batch reconcile",))
    if stalled := [batch for batch in under_way if batch.stalled]:
        first = f"batch {stalled[0].id}: {stalled[0].note}"
        words = f"{len(stalled)} of {len(under_way)} in progress do not get on; {first}"
        return Diagnosis(subject="batches", state="note", words=words, suggestions=ways_out(stalled[0]))
    return _ok("batches", f"{len(under_way)} in progress" if under_way else "none in progress")


async def _clock(muster: "Muster") -> Diagnosis:
    now = time.time()
    newest = await muster.runs.list(limit=1)
    shown = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if now < PLAUSIBLE or (newest and newest[0].created_at > now + SLACK_SECONDS):
        words = f"{shown} is before the newest run" if newest else f"{shown} is impossible"
        return Diagnosis(subject="clock", state="broken", words=words, suggestions=("set the clock of this machine",))
    return _ok("clock", shown)


def _agent(muster: "Muster", settings: Settings, name: str) -> Diagnosis:
    try:
        muster.agents.require(name)
    except MusterError as error:
        return _broken("agent", error)
    if muster.agents.is_person(name):
        return _ok("agent", f"{name} is a person, who answers with: muster answer RUN TEXT")
    variable = _key_of(settings.agents[name])
    if variable and not settings.variable(variable):
        return Diagnosis(subject="agent", state="note", words=f"{name} needs a key in {variable}")
    if program := _missing_program(settings, name):
        words = f"{name} needs the program {program}, which was not found"
        remedy = f"install it, or correct [agents.{name}]"
        return Diagnosis(subject="agent", state="broken", words=words, suggestions=(remedy,))
    found = ["its program was found"] if getattr(settings.agents[name], "command", ()) else []
    found += [f"{variable} is set"] if variable else []
    return _ok("agent", f"{name} is configured ({', '.join([*found, 'not called'])})")


def _missing_program(settings: Settings, name: str) -> str | None:
    """Name the program that an agent would start and that is not there."""
    section = settings.agents[name]
    command = getattr(section, "command", ())
    if not command:
        return None
    program = command[0]
    if os.sep in program:  # else it is looked for on PATH
        program = str(settings.folder / (getattr(section, "working_dir", None) or ".") / program)
    return None if shutil.which(program, path=settings.variable("PATH")) else command[0]


def _key_of(section: "AgentSection") -> str | None:
    named = key_variable(section)
    if named or section.kind not in PROVIDERS or getattr(section, "base_url", None):
        return named
    return PROVIDERS[section.kind].key_variable


def _ok(subject: str, words: str) -> Diagnosis:
    return Diagnosis(subject=subject, state="ok", words=words)


def _broken(subject: str, error: MusterError) -> Diagnosis:
    return Diagnosis(subject=subject, state="broken", words=error.message, suggestions=error.suggestions)


doctor = examine  # as a user writes it: muster.doctor()
