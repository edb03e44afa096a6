"""`muster answer`: the answer of a person to a question that a run waits for."""

from typing import Annotated

from muster.app import Muster
from muster.app.runs.questions import AnswerOutcome
from muster.app.views.calls import answer_view
from muster.cli.line import Argument, Option
from muster.cli.options import RunArgument, read_text
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions
from muster.cli.terminal.output import answer as print_answer


def answer(
    common: CommonOptions,
    run: RunArgument,
    text: Annotated[
        str | None,
        Argument(
            metavar="TEXT",
            when_more="quote the answer",
            help="The answer. If it is - or left out, it is read from standard input.",
        ),
    ] = None,
    call: Annotated[
        str | None,
        Option("--call", metavar="KEY", shown="the only open question", help="The key of the question."),
    ] = None,
) -> None:
    """Answer a question that a run has asked a person."""
    given = read_text(text, "answer", "write it after the run, or pipe it in")

    async def work(muster: Muster) -> AnswerOutcome:
        return await muster.runs.answer(run, given.removesuffix("\n"), key=call)

    found = with_muster(common, work)
    print_answer(common, answer_view(found), lambda console: console.print(_words(found), soft_wrap=True))


def _words(found: AnswerOutcome) -> str:
    answered = f"call {found.sent.key} of run {found.sent.run} is answered"
    if found.goes_on:
        return f"{answered}; run {found.root.id} continues automatically"
    return f"{answered}; continue with: muster runs resume {found.root.id}"
