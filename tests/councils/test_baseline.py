"""The baseline of a council: what it may spend, who is missing, what evaluators read, and ties."""

import json
import sys
from pathlib import Path

import pytest

from muster.councils.baseline import MAX_SAMPLES, samples_next
from muster.councils.reports.html import council_html
from muster.councils.reports.json_report import council_view
from muster.councils.reports.markdown import council_markdown
from muster.councils.rules.values import AbstentionCause
from muster.domain.money import Microdollars
from tests.councils.home import council_home, declared, program, spec_of

FREE = {"ada": program(), "bob": program(answer="42 too"), "cyd": program(answer="41")}
PAID = {name: program("paid", answer=answer) for name, answer in (("ada", "42"), ("bob", "42 too"), ("cyd", "41"))}
FAILS_FIRST = """
import json, pathlib, sys
try:
    pathlib.Path(sys.argv[1]).touch(exist_ok=False)
except FileExistsError:
    print(json.dumps({"thought_process": "", "content": "42", "cost_usd": 0.5}))
else:
    sys.exit("not yet")
"""


def solo(command: list[str], budget: str = "") -> str:
    """Return the settings of an agent that is no member."""
    return f'[agents.solo]\nkind = "program"\ncommand = {json.dumps(command)}\n{budget}'


def fails_first(folder: Path) -> list[str]:
    """Return a program that fails once, and whose every answer then costs half a dollar."""
    return [sys.executable, "-c", FAILS_FIRST, str(folder / "asked")]


@pytest.mark.parametrize(
    ("asked", "spent", "dearest", "cap", "count"),
    [
        (0, 0, 0, 60, 1),
        (1, 10, 10, 60, 5),
        (1, 10, 10, 19, 0),
        (1, 70, 70, 60, 0),
        (1, 1, 1, 1000, MAX_SAMPLES - 1),
        (2, 0, 0, 0, 1),
        (6, 0, 0, 60, 0),
        (2, 50, 50, 0, 0),
    ],
)
def test_samples_are_asked_for_while_the_dearest_of_them_can_be_paid(
    asked: int, spent: int, dearest: int, cap: int, count: int
) -> None:
    paid, most, limit = Microdollars(spent), Microdollars(dearest), Microdollars(cap)
    assert samples_next(asked, paid, most, limit, free=6) == count


async def test_a_baseline_whose_cost_nobody_declared_is_not_asked_again_once_it_has_cost_too_much(
    tmp_path: Path,
) -> None:
    async with council_home(tmp_path, toml=declared(FREE, solo(fails_first(tmp_path)))) as home:
        found = (await home.outcome(spec_of(*FREE, rounds=1, baseline="solo"))).baseline
        assert found is not None
        assert (found.asked, found.spent) == (2, 500_000)
        assert [(one.agent, one.cause) for one in found.missing] == [("solo#1", AbstentionCause.FAILED)]


async def test_a_baseline_that_may_cost_more_than_the_council_did_is_not_asked(tmp_path: Path) -> None:
    toml = declared(FREE, solo(fails_first(tmp_path), "budget_usd = 0.50\n"))
    async with council_home(tmp_path, toml=toml) as home:
        run = await home.hold(spec_of(*FREE, rounds=1, baseline="solo"))
        report = await home.muster.councils.trace(run.id)
        found = council_view(report).builtins()["baseline"]
        assert (found["asked"], found["samples"], found["baseline_usd"]) == (1, 0, 0)
        assert found["flaw"].startswith("solo was not asked, since it may spend no more than the council did")
        assert "lower the most that a call of it can cost: max_tokens of a model, budget_usd" in found["flaw"]
        assert found["missing"][0]["cause"] == "not_started"
        assert not (tmp_path / "asked").exists()


async def test_samples_that_failed_are_paid_from_the_same_money(tmp_path: Path) -> None:
    toml = declared(PAID, solo(program("fails"), "budget_usd = 0.01\n"), each="budget_usd = 0.01\n")
    async with council_home(tmp_path, toml=toml) as home:
        outcome = await home.outcome(spec_of(*PAID, rounds=1, baseline="solo"))
        found = outcome.baseline
        assert found is not None
        assert found.spent == outcome.spent == 60_000  # what a failed call cost is uncertain, and counts in full
        assert [one.agent for one in found.missing] == [f"solo#{number}" for number in range(1, 7)]
        assert "gave no answer that can be read" in found.flaw


async def test_a_sample_that_cannot_be_read_is_repaired_once(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared(FREE, solo(program("once")))) as home:
        run = await home.hold(spec_of(*FREE, rounds=1, baseline="solo"))
        found = (await home.muster.councils.result(run.id)).baseline
        assert found is not None
        assert (len(found.samples), found.missing) == (3, ())
        assert "baseline/01/repair" in {entry.key for entry in await home.calls(run)}


async def test_samples_and_evaluations_that_are_missing_are_named_everywhere(tmp_path: Path) -> None:
    agents = FREE | {"odd": program("garbage")}
    async with council_home(tmp_path, toml=declared(agents, solo(program()))) as home:
        run = await home.hold(spec_of(*agents, rounds=1, baseline="solo"))
        report = await home.muster.councils.trace(run.id)
        (missing,) = council_view(report).builtins()["baseline"]["missing"]
        assert (missing["agent"], missing["phase"], missing["cause"]) == ("odd", "evaluate", "unreadable")
        assert "baseline/evaluate/odd/repair" in {entry.key for entry in await home.calls(run)}
        assert "| evaluate | `odd` | unreadable |" in council_markdown(report).partition("## Baseline")[2]
        assert "<td>evaluate</td><td>odd</td><td>unreadable</td>" in council_html(report).partition("Baseline")[2]


async def test_evaluators_do_not_read_who_the_baseline_is(tmp_path: Path) -> None:
    told = "42, and solo wrote this"
    async with council_home(tmp_path, toml=declared(FREE, solo(program(answer=told)))) as home:
        run = await home.hold(spec_of(*FREE, rounds=1, baseline="solo"))
        asked = [one.request for one in await home.calls(run) if one.key.startswith("baseline/evaluate/")]
        assert len(asked) == 2
        assert all("[agent] wrote this" in str(one) and "solo" not in str(one) for one in asked)


async def test_a_tie_with_the_baseline_is_shown_as_a_tie(tmp_path: Path) -> None:
    same = dict.fromkeys(FREE, program())
    async with council_home(tmp_path, toml=declared(same, solo(program()))) as home:
        run = await home.hold(spec_of(*same, rounds=1, baseline="solo"))
        report = await home.muster.councils.trace(run.id)
        found = council_view(report).builtins()["baseline"]
        everybody = {"the council", "solo#1", "solo#2", "solo#3"}
        assert (found["ahead"], set(found["tied"])) == (None, everybody)
        assert "tie of " in council_markdown(report).partition("## Baseline")[2]
        assert "tie of " in council_html(report).partition("Baseline")[2]


async def test_a_baseline_is_replayed_without_asking_anybody(tmp_path: Path) -> None:
    agents = FREE | {"odd": program("garbage")}
    async with council_home(tmp_path, toml=declared(agents, solo(fails_first(tmp_path)))) as home:
        run = await home.hold(spec_of(*agents, rounds=1, baseline="solo"))
        again = await home.muster.runs.drive(await home.muster.runs.replay(run.id)).wait()
        assert again.result is not None, again.error
        assert again.result["baseline"] == run.result["baseline"]
