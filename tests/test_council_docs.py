"""The page on councils says what the code does: its example, its words, and its simulation."""

import re
from pathlib import Path

import pytest
from bench.councils import BEGIN, COUNCILS, END, SETTINGS, row, simulate

from muster.councils.order import DEFAULT_EFFORT, ScoreScale
from muster.councils.rules.scoring import TieBreak, score_round, weight_of
from muster.councils.rules.stopping import ROUND_WEIGHT, StopReason, StopRule, conviction_of, evidence_budget
from muster.councils.rules.values import AbstentionCause, Evaluation, Vote
from tests.councils.cases import evaluations, proposals

PAGE = (Path(__file__).parent.parent / "docs" / "COUNCILS.md").read_text(encoding="utf-8")


def rows_of(section: str, columns: int) -> list[list[str]]:
    """Return the cells of the tables in a section that have so many columns, without their heads."""
    text = PAGE.partition(f"# {section}\n")[2].partition("\n##")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [cells for cells in rows if len(cells) == columns and "---" not in cells[0]][1:]


def example() -> list[Evaluation]:
    votes = {cells[0]: [one.split() for one in cells[1].split(", ")] for cells in rows_of("Worked example", columns=4)}
    return [
        Evaluation(agent=name, votes=tuple(Vote(target=target, weight=float(weight)) for target, weight in said))
        for name, said in votes.items()
    ]


def test_the_worked_example_is_what_the_scoring_gives() -> None:
    score = score_round(proposals("ada", "bob", "cyd"), example(), seed=1)
    shown = [
        [one.agent, f"{one.support:.3f}", str(one.in_favour), str(one.against), f"{one.controversy:.3f}"]
        for one in score.standings
    ]
    assert rows_of("Worked example", columns=5) == shown
    cells = {(cell.evaluator, cell.target): cell for cell in score.contributions}
    for name, weights, shares, values in rows_of("Worked example", columns=4):
        found = [cells[name, one.split()[0]] for one in weights.split(", ")]
        assert [f"{cell.share:g}" for cell in found] == shares.split(", ")
        assert [f"{cell.value:.3f}" for cell in found] == values.split(", ")
    assert f"= {conviction_of(score):.3f}." in PAGE
    assert f"= {evidence_budget(3):.3f}, of" in PAGE
    assert f"asks for {StopRule().needed(3):g}:" in PAGE


def test_the_table_of_the_colluding_pair_is_what_the_scoring_gives() -> None:
    honest, pair = ("ada", "bob", "cyd"), ("x", "y")
    shown = rows_of("A pair that colludes", columns=5)
    assert len(shown) == 2
    for score_given, weight, of_pair, of_honest, winner in shown:
        assert weight_of(float(score_given), ScoreScale.UNIT) == float(weight)
        table: dict[str, dict[str, float | None]] = {
            name: {other: 90 for other in honest if other != name} | dict.fromkeys(pair, float(weight))
            for name in honest
        }
        for name in pair:
            table[name] = {other: 100 if other in pair else -100 for other in (*honest, *pair) if other != name}
        score = score_round(proposals(*honest, *pair), evaluations(table), seed=1)
        found = {one.agent: f"{one.support:.3f}" for one in score.standings}
        assert found == {name: of_pair if name in pair else of_honest for name in found}
        assert (score.winner in pair) == winner.startswith("x or y")
        assert len(score.tied) == (2 if score.winner in pair else 3)


@pytest.mark.parametrize("words", [StopReason, AbstentionCause, TieBreak])
def test_every_reason_is_explained(words: type[StopReason | AbstentionCause | TieBreak]) -> None:
    assert {str(word) for word in words if f"`{word}`" not in PAGE} == set()


def test_the_constants_are_those_of_the_code() -> None:
    assert f"**The weight of {ROUND_WEIGHT:g}**" in PAGE
    assert f"default {DEFAULT_EFFORT:g}" in PAGE


def test_the_tables_are_made_of_the_simulation_as_it_is() -> None:
    made = PAGE.partition(BEGIN)[2].partition(END)[0]
    assert len(re.findall(r"^\| \D*\d", made, re.MULTILINE)) >= len(SETTINGS)
    first = SETTINGS[0]
    assert row(first, [simulate(first, seed) for seed in range(COUNCILS)]) in made, "run: python -m bench.councils"
