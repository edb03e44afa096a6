"""`muster review`: what people say about verdicts, and how far they agree with the judge."""

from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer, note

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.domain.review import Review
    from muster.reports.agreement import ReviewedRun

LONGEST_NOTE = 10_000
LONGEST_NAME = 100


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
    from muster.domain.errors import BadArgument

    if case is None:
        _list(manner, run)
        return
    if opinion is None:
        raise BadArgument("say what you think of the verdict", suggestions=("right", "wrong", "borderline"))
    _add(manner, run, case, _Said(opinion=opinion, note=note_, by=by, epoch=epoch, subject=subject))


class _Said:
    """What was said on the command line, checked."""

    def __init__(self, *, opinion: str, note: str, by: str, epoch: int | None, subject: str | None) -> None:
        from muster.domain.review import opinion_of

        self.opinion = opinion_of(opinion)
        self.note = _text("--note", note, LONGEST_NOTE)
        self.by = _text("--by", by, LONGEST_NAME)
        self.epoch, self.subject = epoch, subject


def _text(option: str, text: str, most: int) -> str:
    from muster.domain.errors import BadArgument

    if len(text) > most:
        raise BadArgument(f"{option} is longer than {most:,} characters")
    return text.encode("utf-8", "replace").decode()


def _add(manner: Manner, run: str, case: str, said: _Said) -> None:
    async def work(muster: "Muster") -> "Review":
        import time

        from muster.app.suite_office import find_suite_run
        from muster.cli.review_target import find_target
        from muster.domain.review import Review
        from muster.reports.suite_run import open_suite_run

        suite = await open_suite_run(muster.store, await find_suite_run(muster, run))
        target = await find_target(suite, case, said.subject, said.epoch)
        made = Review(
            run=suite.run.id,
            case=target.case,
            subject=target.subject,
            epoch=target.epoch,
            opinion=said.opinion,
            at=time.time(),
            note=said.note,
            by=said.by,
        )
        await muster.store.reviews.add(made)
        note(manner, f"the verdict was: {target.status}" + (f", {target.why}" if target.why else ""))
        return made

    made = with_muster(manner, work)
    text = f"run {made.run}, {made.case} by {made.subject}: the verdict is called {made.opinion}"
    answer(manner, _review_json(made), lambda console: console.print(text, soft_wrap=True))


def _list(manner: Manner, run: str) -> None:
    async def work(muster: "Muster") -> "tuple[str, ReviewedRun]":
        from muster.app.suite_office import find_suite_run
        from muster.reports.agreement import agreement_of
        from muster.reports.suite_run import open_suite_run

        suite = await open_suite_run(muster.store, await find_suite_run(muster, run))
        reviews = await muster.store.reviews.of_run(suite.run.id)
        return suite.run.id, await agreement_of(reviews, suite.results())

    found_id, found = with_muster(manner, work)
    from muster.cli.review_table import tell_reviews

    if not found.reviews and not manner.json:
        note(manner, f"run {found_id} has no reviews yet; say what you think: muster review {found_id} CASE right")
    answer(manner, _reviews_json(found_id, found), lambda console: tell_reviews(console, found))


def _review_json(made: "Review") -> dict[str, Any]:
    from muster.reports.words import moment

    return {
        "run": made.run,
        "case": made.case,
        "subject": made.subject,
        "epoch": made.epoch,
        "opinion": str(made.opinion),
        "note": made.note,
        "by": made.by or None,
        "at": moment(made.at),
    }


def _reviews_json(run: str, found: "ReviewedRun") -> dict[str, Any]:
    def shares(one: Any) -> dict[str, Any]:
        return {"reviews": one.n, "raw": one.raw, "kappa": one.kappa}

    return {
        "run": run,
        "judge_agreement": shares(found.judge),
        "agreement": shares(found.all),
        "borderline": found.borderline,
        "without_verdict": found.without_verdict,
        "reviews": [
            _review_json(one.review)
            | {
                "status": None if one.result is None else str(one.result.status),
                "score": None if one.result is None else one.result.score,
            }
            for one in found.reviews
        ],
    }
