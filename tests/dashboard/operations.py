"""A project whose batches, pool, chains and nightly suite runs the page shows: filled before its server is started."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from muster.domain.case import Status
from muster.store.base import Store
from muster.store.sqlite.store import open_sqlite
from muster.suites.values.verdict import CaseResult
from tests.api.server import Server
from tests.rehearsal import ForkedRehearsal
from tests.suites.reports.suite_store import Story, a_case, a_result, an_answer, fill

from .demo import Demo, started

DAY = 86_400.0
FIRST = time.time() - 25 * DAY  # within what a server keeps
SUBJECTS = ("careful", "hasty")
STALLS = {"script": [{"fault": "stalled_stream", "text": "long story", "times": "always"}]}
CHAINS = {
    "story": """
name: story
steps:
  - name: plan
    agent: careful
    prompt: "Plan a story about {input.topic}"
  - name: write
    agent: quick
    prompt: "Tell the long story of {input.topic}, with every lamp that was ever sold in this shop"
  - name: polish
    agent: careful
    prompt: "Polish: {previous_output}"
inputs: { topic: { required: true } }
""",
    "release": """
name: release
steps:
  - name: notes
    agent: careful
    prompt: "Write the notes"
  - name: test
    command: ["sh", "-c", "test -e tested || (echo 'make: *** [test] Error 2' >&2; exit 2)"]
  - name: publish
    agent: careful
    prompt: "Publish {previous_output}"
""",
}


def provider(name: str, rehearsal: ForkedRehearsal) -> str:
    """Declare a model behind a rehearsal server."""
    place = f'base_url = "{rehearsal.anthropic}"\nkey_env = "REHEARSAL_KEY"\n'
    return f'[agents.{name}]\nkind = "anthropic"\nmodel = "claude-haiku-5-5"\n{place}'


def make(folder: Path, quick: ForkedRehearsal, later: ForkedRehearsal, *, nights: int = 12, cases: int = 20) -> Demo:
    """Write the project and its nightly runs; `later` is a provider whose batches do not end by themselves."""
    demo = Demo.at(folder, more=provider("quick", quick) + provider("later", later) + "[budget]\nday_usd = 20.0\n")
    demo.project.variables["REHEARSAL_KEY"] = "rehearsal"
    for name, text in CHAINS.items():
        (folder / "library" / name).mkdir(exist_ok=True)
        (folder / "library" / name / "chain.yaml").write_text(text, encoding="utf-8")
    with ThreadPoolExecutor(1) as thread:  # the loop of the browser is in this thread
        thread.submit(lambda: asyncio.run(_fill(folder / ".muster" / "muster.db", nights, cases))).result()
    return demo


async def _fill(path: Path, nights: int, cases: int) -> None:
    store = open_sqlite(path)
    try:
        for night in range(nights):
            await fill(store, nightly(night, [f"help-desk/case-{number:02}" for number in range(cases)]))
        await _baseline(store)
    finally:
        await store.maintenance.close()


async def _baseline(store: Store) -> None:
    (found,) = await store.runs.match("night-02")
    await store.records.set_baseline("main", found.id, FIRST)


def nightly(night: int, names: Sequence[str]) -> Story:
    """Make a run of two subjects, of which one gets worse from night to night."""
    failing = {"careful": names[:1], "hasty": names[: min(len(names) // 2, night)]}
    results: list[CaseResult] = [
        a_result(name, Status.FAILED if name in failing[subject] else Status.PASSED, subject=subject)
        for name in names
        for subject in SUBJECTS
    ]
    cases = [a_case(name) for name in names]
    return Story(
        cases=cases,
        results=results,
        calls=[an_answer(case, "hello", subject="careful") for case in cases[: 2 + night % 5]],
        spec={"path": ["help-desk.yaml"], "agents": list(SUBJECTS)},
        run=f"night-{night:02}",
        name="nightly",
        at=FIRST + night * DAY,
    )


def ask_in_batch(server: Server, agent: str, number: int = 1) -> list[str]:
    """Start questions that are sent in a batch."""
    return [
        started(server, "/api/ask", {"agent": agent, "prompt": f"question {one}", "dispatch": "batch"})
        for one in range(number)
    ]


def start_chain(server: Server, name: str, **inputs: str) -> str:
    return started(server, "/api/chains", {"chain": name, "input": inputs})
