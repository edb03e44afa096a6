"""What `muster compare` says of pairs of runs whose truth is known, as the table in docs/SUITES.md.

    python -m bench.verdicts [--pairs 200] [--write]

Agents are noisy: each case has a chance of its own to pass, most of them easy, 80 % on average. The second agent is
equal, or passes every case less often so that its pass rate is 10 or 20 points lower. The runs are put into a store,
and compared by the command.
"""

import argparse
import asyncio
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.suites.reports.suite_store import Story, a_case, a_result, fill

from muster.cli.main import run
from muster.domain.case import Status
from muster.store.sqlite.store import open_sqlite

SUITES = Path(__file__).parent.parent / "docs" / "SUITES.md"
BEGIN, END = "<!-- verdicts -->\n", "<!-- /verdicts -->\n"
SIZES, DROPS = (50, 200), (0.0, 0.1, 0.2)
PASS_RATE = 0.8
COLUMNS = (("better", 0), ("same", 0), ("inconclusive", 0), ("inconclusive", 6), ("worse", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Pairs of agents: how many cases they are asked, and by how much the second is worse."""

    cases: int
    drop: float

    @property
    def words(self) -> str:
        """The first cell of a row."""
        truth = f"{100 * self.drop:.0f} points lower" if self.drop else "equal agents"
        return f"{self.cases} cases, {truth}"


def stories(world: World, random: Random, number: int) -> Iterator[Story]:
    """Make the two runs of a pair; a drop is the same share of every case's chance to pass."""
    names = [f"s/{case:03}" for case in range(world.cases)]
    chances = [random.betavariate(4 * PASS_RATE, 4 * (1 - PASS_RATE)) for _ in names]
    for side, factor in (("a", 1.0), ("b", 1 - world.drop / PASS_RATE)):
        passed = [random.random() < factor * chance for chance in chances]
        results = [
            a_result(name, Status.PASSED if good else Status.FAILED) for name, good in zip(names, passed, strict=True)
        ]
        yield Story(run=f"{side}{number}", cases=[a_case(name) for name in names], results=results)


async def keep(home: Path, pair: Sequence[Story]) -> None:
    """Put runs into a store."""
    store = open_sqlite(home / "muster.db")
    try:
        for story in pair:
            await fill(store, story)
    finally:
        await store.maintenance.close()


def compare(home: Path, number: int) -> tuple[str, int]:
    """Return what the command says, and its exit code."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = run(["compare", f"a{number}", f"b{number}", "--json", "--home", str(home)])
    return json.loads(out.getvalue())["data"]["verdict"], code


def verdicts(world: World, pairs: int) -> Counter[tuple[str, int]]:
    """Count the verdicts on pairs of one kind."""
    random, found = Random(f"{world}"), Counter[tuple[str, int]]()
    for number in range(pairs):
        with TemporaryDirectory() as folder:
            asyncio.run(keep(Path(folder), [*stories(world, random, number)]))
            found[compare(Path(folder), number)] += 1
    return found


def table(pairs: int) -> Iterator[str]:
    """Write the table, a row for each kind of pair."""
    heads = [f"{verdict} ({code})" for verdict, code in COLUMNS]
    yield f"| {pairs} pairs each; verdict (exit code) | {' | '.join(heads)} |"
    yield f"|---|{'---:|' * len(COLUMNS)}"
    for drop in DROPS:
        for cases in SIZES:
            world = World(cases=cases, drop=drop)
            found = verdicts(world, pairs)
            cells = [f"{found[column] / pairs:.1%}".replace("%", " %") for column in COLUMNS]
            yield f"| {world.words} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table, and write it into the page if asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench.verdicts")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="write it into docs/SUITES.md")
    given = parser.parse_args()
    lines = "".join(f"{line}\n" for line in table(given.pairs))
    print(lines, end="")
    if given.write:
        text = SUITES.read_text(encoding="utf-8")
        before, rest = text.split(BEGIN)
        SUITES.write_text(f"{before}{BEGIN}{lines}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
