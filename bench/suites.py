"""A child process that runs a suite of many cases with one check against the rehearsal server, or a peer that does."""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import muster
from bench.fleet import AGENT, spent
from bench.processes import started, wait_for
from muster.cli.main import set_up
from muster.settings import load_settings

SUITE = """
schema_version: 1
skill_or_agent: bench
cases:
  - id: bench/question
    dataset: {file: rows.jsonl}
    input: {messages: [{role: user, content: "question {{number}}"}]}
    expected: {output: [{kind: contains, value: "question {{number}}"}]}
"""
HEAD = """\
schema_version: 1
skill_or_agent: bench
cases:
"""
ENTRY = """\
  - id: bench/question-{number}
    description: Case number {number}
    input: {{messages: [{{role: user, content: "question {number}"}}]}}
    expected: {{output: [{{kind: contains, value: "question {number}"}}]}}
"""


def write_suite(folder: Path, cases: int) -> Path:
    """Write a suite with a row for every case."""
    path = folder / "cases.yaml"
    path.write_text(SUITE)
    with (folder / "rows.jsonl").open("w") as rows:
        rows.writelines(json.dumps({"number": number}) + "\n" for number in range(cases))
    return path


def write_entries(folder: Path, cases: int) -> Path:
    """Write a suite in which every case has an entry of its own."""
    path = folder / "cases.yaml"
    with path.open("w") as file:
        file.write(HEAD)
        file.writelines(ENTRY.format(number=number) for number in range(cases))
    return path


def command(url: str, cases: int, concurrency: int) -> dict[str, float]:
    """Run `muster run` as a person does: started, surveyed, stored, asked, checked, reported."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_entries(folder, cases)
        keys = {"ANTHROPIC_API_KEY": "sk-bench-0123456789", "ANTHROPIC_BASE_URL": url, "MUSTER_HOME": f"{name}/home"}
        order = ["cases.yaml", "--agent", AGENT, "--concurrency", str(concurrency), "--budget", "10000", "--json"]
        line = [sys.executable, "-m", "muster", "run", *order]
        wall = time.perf_counter()
        with started(line, folder, {**os.environ, **keys}) as run:
            wait_for([run])
            seconds = time.perf_counter() - wall
            printed = run.output()
    assert json.loads(printed)["data"]["counts"] == {"passed": cases}, printed
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # it is the only child of this process
    return {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}


async def ours(url: str, cases: int, concurrency: int) -> dict[str, float]:
    """Run the suite: read in, asked, checked, kept."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys = {"ANTHROPIC_API_KEY": "sk-bench-0123456789", "ANTHROPIC_BASE_URL": url}
        settings = load_settings(folder / "home", folder=folder, environment=keys)
        (folder / "warm").mkdir()
        warm = {"path": str(write_suite(folder / "warm", concurrency)), "agents": [AGENT]}
        spec = {"path": str(write_suite(folder, cases)), "agents": [AGENT]}
        async with muster.open(settings=settings) as m:
            await (await m.start("suite", warm, concurrency=concurrency)).result()
            wall, cpu = spent()
            run = await m.start("suite", spec, concurrency=concurrency, budget_usd=10_000)
            found: Any = await run.result()
            now, used = spent()
    assert found["counts"] == {"passed": cases}, found
    return {"seconds": now - wall, "cpu": used - cpu}


async def peer(url: str, cases: int, concurrency: int) -> dict[str, float]:
    """Do the same work with pydantic-evals and aiohttp; nothing is remembered."""
    import aiohttp
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import Evaluator, EvaluatorContext

    class Contains(Evaluator[str, str, Any]):
        """The answer holds the question."""

        def evaluate(self, context: "EvaluatorContext[str, str, Any]") -> bool:
            return context.inputs in context.output

    headers = {"x-api-key": "sk-bench", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def task(question: str) -> str:
            message = {"role": "user", "content": question}
            body = {"model": AGENT.partition("/")[2], "max_tokens": 2048, "messages": [message]}
            async with session.post(f"{url}/v1/messages", data=json.dumps(body), headers=headers) as answer:
                text: str = json.loads(await answer.read())["content"][0]["text"]
                return text

        all_cases: list[Any] = [Case(name=str(number), inputs=f"question {number}") for number in range(cases)]
        dataset: Any = Dataset(name="bench", cases=all_cases, evaluators=[Contains()])
        wall, cpu = spent()
        report = await dataset.evaluate(task, max_concurrency=concurrency, progress=False)
        now, used = spent()
    assert len(report.cases) == cases
    return {"seconds": now - wall, "cpu": used - cpu}


def main() -> None:
    """Run one of the three and print its figures as JSON."""
    kind, url, cases, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if kind == "command":
        print(json.dumps(command(url, cases, concurrency)))
        return
    set_up()  # for both of them, as the command does
    figures = asyncio.run({"ours": ours, "peer": peer}[kind](url, cases, concurrency))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**figures, "peak_mb": peak}))


if __name__ == "__main__":
    main()
