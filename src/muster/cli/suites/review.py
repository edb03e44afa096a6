"""`muster review`: what people say about verdicts, and how far they agree with the judge."""

from collections.abc import Iterator
from typing import Annotated

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.app import Muster
from muster.app.suites.reviews import ReviewDraft
from muster.app.suites.suites import AddedReview
from muster.app.suites.values import WORDS, Agreement, ReviewedRun
from muster.app.views.suites import review_view, reviews_view
from muster.cli.line import Argument, Option
from muster.cli.session import with_muster
from muster.cli.suites.options import SuiteRunReference
from muster.cli.terminal.output import CommonOptions, answer, clean, note
from muster.domain.errors import BadArgument
from muster.domain.run import Run
from muster.text.words import count, percent

COLOURS = {"right": "green", "wrong": "red", "borderline": "yellow"}


def review(
    common: CommonOptions,
    run: SuiteRunReference,
    case: Annotated[
        str | None, Argument(metavar="CASE", help="The id of a case; without it, reviews are listed.")
    ] = None,
    opinion: Annotated[
        str | None, Argument(metavar="OPINION", values=COLOURS, help="Whether the verdict is right.")
    ] = None,
    note_: Annotated[str, Option("--note", metavar="TEXT", help="Why you think so.")] = "",
    epoch: Annotated[
        int | None, Option("--epoch", metavar="N", min=1, shown="the only one", help="The epoch of the case.")
    ] = None,
    subject: Annotated[
        str | None,
        Option("--subject", metavar="SUBJECT", shown="the only one", help="The subject, an agent or a prompt."),
    ] = None,
    by: Annotated[str, Option("--by", metavar="NAME", help="The name of the reviewer.")] = "",
) -> None:
    """Add a review of a verdict, or list reviews and their agreement with the judge."""
    if case is None:
        _list(common, run)
        return
    if opinion is None:
        raise BadArgument("the opinion is missing", suggestions=("add right, wrong or borderline after the case",))
    draft = ReviewDraft(case=case, opinion=opinion, note=note_, by=by, epoch=epoch, subject=subject)
    _add(common, run, draft)


def _add(common: CommonOptions, run: str, draft: ReviewDraft) -> None:
    async def work(muster: Muster) -> AddedReview:
        return await muster.suites.review(run, draft)

    found = with_muster(common, work)
    made, result = found.review, found.result
    note(common, f"the verdict was: {result.status}" + (f", {result.why}" if result.why else ""))
    text = f"run {made.run}, {made.case} by {made.subject}: the verdict was reviewed as {made.opinion}"
    answer(common, review_view(made), lambda console: console.print(text, soft_wrap=True))


def _list(common: CommonOptions, reference: str) -> None:
    async def work(muster: Muster) -> tuple[Run, ReviewedRun]:
        return await muster.suites.reviews(reference)

    run, found = with_muster(common, work)
    if not found.reviews and not common.json:
        note(common, f"run {run.id} has no reviews yet; add one with: muster review {run.id} CASE right")
    answer(common, reviews_view(run.id, found), lambda console: tell_reviews(console, found))


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
