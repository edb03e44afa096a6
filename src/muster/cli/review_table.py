"""Reviews for a terminal: what people said, and how far they agree with the verdicts."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.app.suite_values import WORDS, Agreement, ReviewedRun
from muster.cli.clean import clean
from muster.reports.words import count, percent

COLOURS = {"right": "green", "wrong": "red", "borderline": "yellow"}


def tell_reviews(console: Console, found: ReviewedRun) -> None:
    """Print all reviews and what they come to."""
    if not found.reviews:
        return
    console.print(_table(found))
    for line in _lines(found):
        console.print(Text(line), soft_wrap=True)


def _table(found: ReviewedRun) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("case", "subject", "epoch", "verdict", "opinion", "by", "note"):
        table.add_column(name, overflow="fold")
    for one in found.reviews:
        review, result = one.review, one.result
        table.add_row(
            Text(clean(review.case)),
            Text(clean(review.subject)),
            str(review.epoch),
            "–" if result is None else WORDS[result.status],
            Text(str(review.opinion), style=COLOURS[str(review.opinion)]),
            Text(clean(review.by)),
            Text(clean(review.note)),
        )
    return table


def _lines(found: ReviewedRun) -> Iterator[str]:
    if found.judge.n:
        yield f"agreement with the judge: {_shares(found.judge)}"
    if found.all != found.judge or not found.judge.n:
        yield f"agreement with all verdicts: {_shares(found.all)}"
    if found.borderline:
        yield f"{count(found.borderline, 'review')} left out as borderline"
    if found.without_verdict:
        yield f"{count(found.without_verdict, 'review')} left out: the case neither passed nor failed"


def _shares(one: Agreement) -> str:
    kappa = "–" if one.kappa is None else f"{one.kappa:.2f}"
    return f"{percent(one.raw)} of {count(one.n, 'review')}, Cohen's kappa {kappa}"
