"""The figures that are held: what is measured, against what, and how near the goal."""

import json
import math
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import steps as triage
from bench.processes import Helper, run_child, started, wait_for
from muster.testing.sim import RehearsalProcess

CALLS = 5_000
CONCURRENCY = 100
LATENCY_MS = 50
SIZES = (1_000, 20_000, 100_000)
ROUNDS = 3
RESULTS = 50_000
PARKED = 20_000
PROGRAMS = 500
LETTERS = 1_000
SUITES = (2_000, 20_000)
QUEUED = (0, 1_000)
WATCHERS = 1_000
PAGE_CASES = 20_000
TAB_EVENTS = 200_000
PAGE_CALLS = 100_000
WORKERS = (1, 2, 4)
WORKER_RUNS, WORKER_CALLS = 8, 1_000
FLEET_SIZES, FLEET_CALLS = (1, 2, 4, 8, 16), 250  # workers with one run each
FLEET_LATENCY_MS = 500  # so that many workers do not wait for the cores of a small machine
IDLE_FLEETS = (
    (1, "none", "worker"),
    (1, "redis", "worker"),
    (8, "redis", "worker"),
    (1, "none", "serve"),
    (1, "redis", "serve"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value beside its goal."""

    name: str
    value: float
    unit: str
    goal: str
    held: bool


Say = Callable[[str], None]


def child(say: Say, module: str, *arguments: str | int, beside: Helper | None = None) -> dict[str, Any]:
    """Run a child process and return its figures, which are told at once: what comes later may fail."""
    found = run_child([sys.executable, "-m", f"bench.{module}", *map(str, arguments)], beside)
    say(f"measured: {', '.join(f'{name} {_spelled(value)}' for name, value in found.items())}")
    return found


def _spelled(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)


def fleet(say: Say, kind: str, calls: int, concurrency: int, latency_ms: float = 0.0) -> dict[str, float]:
    """Make many calls in a process of their own, to a rehearsal server of their own."""
    with RehearsalProcess(latency_ms=latency_ms) as sim:
        return child(say, "fleet", kind, sim.anthropic, calls, concurrency, beside=sim)


def calls(say: Say) -> Iterator[Figure]:
    """Durable calls, also observed ones, beside raw requests, alternating, the best of a few rounds of each."""
    ideal = CONCURRENCY / (LATENCY_MS / 1000)
    rounds: dict[str, list[dict[str, float]]] = {"raw": [], "durable": [], "watched": []}
    for number in range(ROUNDS):
        for kind, found in rounds.items():
            say(f"{kind} calls, round {number + 1} of {ROUNDS}")
            found.append(fleet(say, kind, CALLS, CONCURRENCY, LATENCY_MS))
    rate, raw_rate = (max(CALLS / one["seconds"] for one in rounds[kind]) for kind in ("durable", "raw"))
    cpu, watched_cpu, raw_cpu = (
        min(one["cpu"] / CALLS * 1000 for one in rounds[kind]) for kind in ("durable", "watched", "raw")
    )
    yield Figure(name="durable calls a second", value=rate, unit="/s", goal="", held=True)
    yield Figure(name="  of ideal", value=100 * rate / ideal, unit="%", goal="≥ 90", held=rate >= 0.9 * ideal)
    yield Figure(name="  of raw aiohttp", value=100 * rate / raw_rate, unit="%", goal="", held=True)
    yield Figure(name="raw aiohttp of ideal", value=100 * raw_rate / ideal, unit="%", goal="", held=True)
    yield Figure(name="CPU for 1,000 durable calls", value=cpu, unit="s", goal="≤ 0.5", held=cpu <= 0.5)
    more = watched_cpu / cpu
    yield Figure(name="  with metrics counted", value=more, unit="×", goal="≤ 1.15", held=more <= 1.15)
    yield Figure(name="CPU for 1,000 raw requests", value=raw_cpu, unit="s", goal="", held=True)


def memory(say: Say) -> Iterator[Figure]:
    """Peak memory of a process that makes so many calls through `ctx.map`."""
    first = None
    for size in SIZES:
        say(f"memory at {size:,} calls")
        peak = fleet(say, "durable", size, CONCURRENCY)["peak_mb"]
        held, goal = first is None or peak / first <= 1.2, "" if first is None else "≤ 1.2 × the first"
        first = first or peak
        yield Figure(name=f"peak memory, {size:,} calls", value=peak, unit="MB", goal=goal, held=held)


def batches(say: Say) -> Iterator[Figure]:
    """Results of a large batch into the store, beside the SDK that only reads them, and what a parked call takes."""
    with RehearsalProcess() as sim, tempfile.TemporaryDirectory() as folder:

        def measure(kind: str, *arguments: str | int) -> dict[str, Any]:
            return child(say, "batches", kind, sim.anthropic, *arguments, beside=sim)

        say(f"handing in a batch of {RESULTS:,}")
        name = measure("submit", folder, RESULTS)["provider_id"]
        say("reading its results with the SDK")
        sdk = measure("sdk", str(name), RESULTS)
        told = f"anthropic SDK, only reading {RESULTS:,} results"
        yield Figure(name=told, value=sdk["seconds"], unit="s", goal="", held=True)
        yield Figure(name="  its peak memory", value=sdk["peak_mb"], unit="MB", goal="", held=True)
        say("bringing its results into the store")
        ours = measure("fetch", folder, RESULTS)
        seconds, peak = ours["seconds"], ours["peak_mb"]
        yield Figure(name=f"{RESULTS:,} results into the store", value=seconds, unit="s", goal="≤ 3", held=seconds <= 3)
        yield Figure(name="  CPU", value=ours["cpu"], unit="s", goal="", held=True)
        yield Figure(name="  peak memory", value=peak, unit="MB", goal="≤ 80", held=peak <= 80)
        share = 100 * seconds / sdk["seconds"]
        yield Figure(name="  share of the SDK's time", value=share, unit="%", goal="", held=True)
        say(f"parking {PARKED:,} calls")
        parked = measure("parked", f"{folder}/parked", PARKED)["bytes"] / 1000
        yield Figure(name="a parked call", value=parked, unit="KB", goal="≤ 4", held=parked <= 4)


def programs(say: Say) -> Iterator[Figure]:
    """CPU of a durable call to `/bin/cat` beside a bare spawn of it, alternating, the best of a few rounds of each."""
    found: dict[str, list[float]] = {"bare": [], "durable": []}
    for number in range(ROUNDS):
        for kind, rounds in found.items():
            say(f"{kind} programs, round {number + 1} of {ROUNDS}")
            rounds.append(child(say, "programs", kind, PROGRAMS)["cpu"] / PROGRAMS * 1000)
    bare, durable = min(found["bare"]), min(found["durable"])
    over = durable - bare
    yield Figure(name="CPU of a durable program call", value=durable, unit="ms", goal="", held=True)
    yield Figure(name="  of a bare spawn", value=bare, unit="ms", goal="", held=True)
    yield Figure(name="  over a bare spawn", value=over, unit="ms", goal="≤ 2", held=over <= 2)


def suites(say: Say) -> Iterator[Figure]:
    """Suites with one check a case, the best of a few rounds: against the ideal, and beside a peer when it is there."""
    found = {}
    for cases in SUITES:
        rounds = []
        for number in range(ROUNDS):
            say(f"a suite of {cases:,} cases, round {number + 1} of {ROUNDS}")
            with RehearsalProcess(latency_ms=LATENCY_MS) as sim:
                rounds.append(child(say, "suites", "ours", sim.anthropic, cases, CONCURRENCY, beside=sim))
        found[cases] = min(rounds, key=lambda one: float(one["seconds"]))
    small, large = found[SUITES[0]], found[SUITES[1]]
    cases = SUITES[1]
    ideal = cases * LATENCY_MS / 1000 / CONCURRENCY
    share, growth = ideal / large["seconds"], large["peak_mb"] / small["peak_mb"]
    cpu = large["cpu"] / cases * 1000
    yield Figure(
        name=f"suite of {cases:,} cases, of ideal", value=100 * share, unit="%", goal="≥ 80", held=share >= 0.8
    )
    yield Figure(name="  CPU for 1,000 cases", value=cpu, unit="s", goal="", held=True)
    yield Figure(name="  peak memory", value=large["peak_mb"], unit="MB", goal="≤ 1.2 × small", held=growth <= 1.2)
    yield Figure(name=f"  peak memory of {SUITES[0]:,}", value=small["peak_mb"], unit="MB", goal="", held=True)
    yield from suite_by_command(say)
    if find_spec("pydantic_evals") is None:
        say("pydantic-evals is not installed: there is no peer to compare with")
        return
    say(f"pydantic-evals with {SUITES[0]:,} cases")
    with RehearsalProcess(latency_ms=LATENCY_MS) as sim:
        peer = child(say, "suites", "peer", sim.anthropic, SUITES[0], CONCURRENCY, beside=sim)
    rate, ours = SUITES[0] / peer["seconds"], SUITES[0] / small["seconds"]
    yield Figure(
        name="pydantic-evals, of ideal",
        value=100 * rate / (CONCURRENCY / LATENCY_MS * 1000),
        unit="%",
        goal="",
        held=True,
    )
    yield Figure(name="  how many times as fast we are", value=ours / rate, unit="×", goal="", held=True)


def suite_by_command(say: Say) -> Iterator[Figure]:
    """`muster run` on a YAML suite, from its start to its exit, the best of a few rounds: against the ideal."""
    cases, rounds = SUITES[1], []
    for number in range(ROUNDS):
        say(f"muster run with {cases:,} cases in YAML, round {number + 1} of {ROUNDS}")
        with RehearsalProcess(latency_ms=LATENCY_MS) as sim:
            rounds.append(child(say, "suites", "command", sim.anthropic, cases, CONCURRENCY, beside=sim))
    best = min(rounds, key=lambda one: float(one["seconds"]))
    share = cases * LATENCY_MS / 1000 / CONCURRENCY / best["seconds"]
    name = f"suite of {cases:,} YAML cases by command, of ideal"
    yield Figure(name=name, value=100 * share, unit="%", goal="≥ 80", held=share >= 0.8)
    yield Figure(name="  CPU for 1,000 cases", value=best["cpu"] / cases * 1000, unit="s", goal="", held=True)
    yield Figure(name="  peak memory", value=best["peak_mb"], unit="MB", goal="", held=True)


def steps(say: Say) -> Iterator[Figure]:
    """Steps of the same small program with Muster and with DBOS, alternating; and what is paid twice after a kill."""
    kinds = triage.kinds()
    if "dbos" not in kinds:
        say("DBOS is not installed (scripts/prepare dbos): there is no peer to compare with")
    best = dict.fromkeys(kinds, (math.inf, math.inf))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            for kind in kinds:
                say(f"steps with {kind}, round {number + 1} of {ROUNDS}")
                found = triage.measured(kind, LETTERS, Path(folder, f"{kind}{number}"))
                cpu, seconds = best[kind]
                best[kind] = min(cpu, found["cpu_seconds"]), min(seconds, found["seconds"])
        for kind, (cpu, seconds) in best.items():
            for name, value in (("CPU", cpu), ("time", seconds)):
                milliseconds = 1000 * value / LETTERS
                yield Figure(name=f"{name} of a step with {kind}", value=milliseconds, unit="ms", goal="", held=True)
            again = triage.killed(kind, LETTERS, Path(folder, f"{kind}-killed"))
            yield Figure(name="  paid again after a kill", value=again, unit=f"of {LETTERS:,}", goal="", held=True)


def pool(say: Say) -> Iterator[Figure]:
    """Slots at work, alone and with tasks in the queue: the share of a core that the driving process takes."""
    for queued in QUEUED:
        say(f"8 busy slots, {queued:,} tasks queued")
        share = 100 * child(say, "pool", queued)["share"]
        name = f"8 busy slots, {queued:,} tasks queued: of a core"
        yield Figure(name=name, value=share, unit="%", goal="< 10", held=share < 10)


def streams(say: Say) -> Iterator[Figure]:
    """Watchers of ten judged battles over HTTP, with one more that stops reading; the best of a few rounds.

    What the same battles cost without watchers is the least of as many rounds.
    """
    alone, rounds = [], []
    for number in range(ROUNDS):
        say(f"10 judged battles, round {number + 1} of {ROUNDS}")
        alone.append(child(say, "streams", 0)["cpu"])
        say(f"{WATCHERS:,} watchers of them")
        rounds.append(child(say, "streams", WATCHERS))
    best = min(rounds, key=lambda one: float(one["cpu"]))
    cost = (best["cpu"] - min(alone)) / best["delivered"] * 1e6
    complete = 100 * min(one["complete"] for one in rounds) / WATCHERS
    name = f"{WATCHERS:,} watchers: CPU of the server for an event at a watcher"
    yield Figure(name=name, value=cost, unit="µs", goal="≤ 100", held=cost <= 100)
    yield Figure(
        name="  watchers that saw every event once", value=complete, unit="%", goal="100", held=complete == 100
    )
    yield Figure(name="  delay of an event, half of them", value=best["p50_ms"], unit="ms", goal="", held=True)
    held = min(one["held"] for one in rounds)
    yield Figure(name="  unsent for a watcher that stopped", value=held / 1000, unit="kB", goal="> 0", held=held > 0)
    yield Figure(name="  delay of an event, 99 %", value=best["p99_ms"], unit="ms", goal="", held=True)
    connecting = best["connecting"] / WATCHERS * 1000
    yield Figure(name="  CPU of the server to connect a watcher", value=connecting, unit="ms", goal="", held=True)


def workers(say: Say) -> Iterator[Figure]:
    """Runs shared by workers through Redis over one store, beside one process that drives its own."""
    total = WORKER_RUNS * WORKER_CALLS
    say(f"{total:,} calls in one process")
    alone = fleet(say, "durable", total, CONCURRENCY, LATENCY_MS)["cpu"] / total * 1000
    say(f"{total:,} calls in one process, half as many at a time")
    fewer = fleet(say, "durable", total, CONCURRENCY // 2, LATENCY_MS)["cpu"] / total
    name = "CPU a call, one process with half as many calls at a time"
    yield Figure(name=name, value=fewer * 1000 / alone, unit="×", goal="", held=True)
    for database, name in (("sqlite", "SQLite"), ("postgres", "PostgreSQL")):
        yield from _workers_on(database, name, alone, say)
    yield from _idle_workers(say)
    yield from _fleet_sizes(say)


def _idle_workers(say: Say) -> Iterator[Figure]:
    """What workers and servers cost that have nothing to do."""
    for number, queue, command in IDLE_FLEETS:
        called = f"muster {command} {'with' if queue == 'redis' else 'without'} Redis"
        say(f"idle {called}: {number}")
        rate = child(say, "idle", number, queue, command)["transactions"]
        name = f"PostgreSQL: transactions a second of an idle {called}, processes: {number}"
        yield Figure(name=name, value=rate, unit="/s", goal="< 1", held=rate < 1)


def _fleet_sizes(say: Say) -> Iterator[Figure]:
    """What a call costs in a fleet of so many workers, beside as many workers that share nothing but the machine.

    Whatever they do for each other is the difference: a machine that is busier makes each call dearer by itself.
    """
    for number in FLEET_SIZES:
        total, costs = number * FLEET_CALLS, dict[str, tuple[float, float]]()
        for kind in ("apart", "together"):
            say(f"{total:,} calls in {number} runs, workers: {number} {kind}, PostgreSQL")
            with RehearsalProcess(latency_ms=FLEET_LATENCY_MS) as sim:
                order = ("postgres", number, number, FLEET_CALLS, kind)
                found = child(say, "workers", sim.anthropic, *order, beside=sim)
            costs[kind] = found["transactions"] / total, found["cpu"] / total * 1000
        goal = "≤ 1.3" if number == 8 else ""
        for place, name, unit in ((0, "transactions a call", ""), (1, "CPU for 1,000 calls", "s")):
            value, ratio = costs["together"][place], costs["together"][place] / costs["apart"][place]
            told = f"PostgreSQL: {name}, workers with one run: {number}"
            yield Figure(name=told, value=value, unit=unit, goal="", held=True)
            yield Figure(name="  of as many apart", value=ratio, unit="×", goal=goal, held=not goal or ratio <= 1.3)


def _workers_on(database: str, called: str, alone: float, say: Say) -> Iterator[Figure]:
    """Workers over one database; `alone` is the CPU for 1,000 calls of one process over a file."""

    def measure(number: int, runs: int) -> tuple[float, float]:
        """Return the seconds, and the CPU for 1,000 calls, of so many workers."""
        total = runs * WORKER_CALLS
        say(f"{total:,} calls in {runs} runs, workers: {number}, {called}")
        with RehearsalProcess(latency_ms=LATENCY_MS) as sim:
            found = child(say, "workers", sim.anthropic, database, number, runs, WORKER_CALLS, "together", beside=sim)
        return found["seconds"], found["cpu"] / total * 1000

    found: dict[int, tuple[float, float]] = {}
    for number in WORKERS:
        found[number] = seconds, cpu = measure(number, WORKER_RUNS)
        name = f"{called}: calls a second, workers: {number}"
        yield Figure(name=name, value=WORKER_RUNS * WORKER_CALLS / seconds, unit="/s", goal="", held=True)
        yield Figure(name="  of one worker", value=found[1][0] / seconds, unit="×", goal="", held=True)
        yield Figure(name="  CPU for 1,000 calls", value=cpu, unit="s", goal="", held=True)
    _, half = measure(1, WORKER_RUNS // 2)
    (_, one), (_, two) = found[1], found[2]
    name = f"{called}: CPU a call, two workers of one that is as busy as each of them"
    yield Figure(name=name, value=two / half, unit="×", goal="≤ 1.1", held=two / half <= 1.1)
    name = f"{called}: CPU a call, two workers of one that does it all"
    yield Figure(name=name, value=two / one, unit="×", goal="", held=True)
    name = f"{called}: CPU a call, one worker of one process over a file"
    yield Figure(name=name, value=one / alone, unit="×", goal="≤ 1.5", held=one / alone <= 1.5)


def page(say: Say) -> Iterator[Figure]:
    """Large runs opened on the page, in a real browser, and a tab that watches a run for long."""
    say(f"a run of {PAGE_CALLS:,} calls and a suite of {PAGE_CASES:,} cases on the page")
    found = child(say, "page", PAGE_CALLS, PAGE_CASES)
    first = found["first_seconds"]
    name = f"a run of {PAGE_CALLS:,} calls opened on the page: first rows"
    yield Figure(name=name, value=first, unit="s", goal="≤ 1", held=first <= 1)
    yield Figure(name="  200 rows more, by scrolling", value=found["scroll_seconds"], unit="s", goal="", held=True)
    runs = found["runs_seconds"]
    yield Figure(name="the page opened: the list of runs", value=runs, unit="s", goal="≤ 1", held=runs <= 1)
    cases = found["case_seconds"]
    name = f"a suite of {PAGE_CASES:,} cases opened on the page: first rows"
    yield Figure(name=name, value=cases, unit="s", goal="≤ 1", held=cases <= 1)
    yield Figure(name="  its charts", value=found["chart_seconds"], unit="s", goal="", held=True)
    say(f"a tab that watches {TAB_EVENTS:,} events")
    tab = child(say, "tab", TAB_EVENTS)
    for name, unit, before, after in (
        ("heap of a tab", "MB", tab["before_mb"], tab["after_mb"]),
        ("nodes of a tab", "", tab["before_nodes"], tab["after_nodes"]),
    ):
        told = f"{name}, after {TAB_EVENTS:,} events (after 10,000: {before:,.1f})"
        yield Figure(name=told, value=after, unit=unit, goal="flat (±20 %)", held=after <= 1.2 * before)


def start(say: Say) -> Iterator[Figure]:
    """CPU of `muster --help`, with children's time taken from the system's own account."""
    say("muster --help")
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with started([sys.executable, "-m", "muster", "--help"]) as command:
            wait_for([command])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    value = statistics.median(seconds)
    yield Figure(name="CPU of muster --help", value=value, unit="s", goal="≤ 0.3", held=value <= 0.3)


def as_json(figures: list[Figure]) -> str:
    """Spell the figures as JSON."""
    return json.dumps([asdict(figure) for figure in figures], indent=2, ensure_ascii=False)
