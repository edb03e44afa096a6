"""`muster review`: what people say about verdicts, and how far they agree with the judge."""

from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer, note

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.reviews import ReviewDraft
    from muster.app.suite_values import ReviewedRun
    from muster.app.suites import Reviewed
    from muster.domain.run import Run


def register(app: Group) -> None:
    """Add the command."""
    command(app, "review")(review)


def review(
    manner: Manner,
    run: Annotated[
        str, Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`: the last suite run.")
    ],
    case: Annotated[str | None, Argument(metavar="CASE", help="The id of a case; without, reviews are listed.")] = None,
    opinion: Annotated[
        str | None, Argument(metavar="right|wrong|borderline", help="What you think of its verdict.")
    ] = None,
    note_: Annotated[str, Option("--note", metavar="TEXT", help="Why.")] = "",
    epoch: Annotated[int | None, Option("--epoch", metavar="N", min=1, help="Which epoch of it.")] = None,
    subject: Annotated[str | None, Option("--subject", metavar="SUBJECT", help="Which subject.")] = None,
    by: Annotated[str, Option("--by", metavar="NAME", help="Who says so, if you want that known.")] = "",
) -> None:
    """Say whether a verdict was right, or see what was said and how far it agrees with the judge."""
    from muster.app.reviews import ReviewDraft
    from muster.domain.errors import BadArgument

    if case is None:
        _list(manner, run)
        return
    if opinion is None:
        raise BadArgument("say what you think of the verdict", suggestions=("right", "wrong", "borderline"))
    draft = ReviewDraft(case=case, opinion=opinion, note=note_, by=by, epoch=epoch, subject=subject)
    _add(manner, run, draft)


def _add(manner: Manner, run: str, draft: "ReviewDraft") -> None:
    from muster.app.views.suites import review_view

    async def work(muster: "Muster") -> "Reviewed":
        return await muster.suites.review(run, draft)

    found = with_muster(manner, work)
    made, result = found.review, found.result
    note(manner, f"the verdict was: {result.status}" + (f", {result.why}" if result.why else ""))
    text = f"run {made.run}, {made.case} by {made.subject}: the verdict is called {made.opinion}"
    answer(manner, review_view(made), lambda console: console.print(text, soft_wrap=True))


def _list(manner: Manner, reference: str) -> None:
    from muster.app.views.suites import reviews_view
    from muster.cli.review_table import tell_reviews

    async def work(muster: "Muster") -> "tuple[Run, ReviewedRun]":
        return await muster.suites.reviews(reference)

    run, found = with_muster(manner, work)
    if not found.reviews and not manner.json:
        note(manner, f"run {run.id} has no reviews yet; say what you think: muster review {run.id} CASE right")
    answer(manner, reviews_view(run.id, found), lambda console: tell_reviews(console, found))
