"""`muster ask`: one question to one agent; standard output holds the answer and nothing else."""

import sys
from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.sending import Sending, sent

if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.cli.answering import Answer


def register(app: Group) -> None:
    """Add the command."""
    command(app, "ask")(ask)


@patient
@sent
def ask(
    manner: Manner,
    sending: Sending,
    patience: "Patience",
    agent: Annotated[str, Argument(metavar="AGENT", help="anthropic/MODEL, openai/MODEL, sim/echo, …")],
    prompt: Annotated[
        str | None, Argument(metavar="PROMPT", help="The question; left out or -: read from standard input.")
    ] = None,
    system: Annotated[str, Option("--system", metavar="TEXT", help="What the agent is told first.")] = "",
    budget: Annotated[str | None, Option("--budget", metavar="USD", help="The most it may cost.")] = None,
    max_tokens: Annotated[
        int | None, Option("--max-tokens", metavar="N", min=1, max=10_000_000, help="The longest answer.")
    ] = None,
    temperature: Annotated[float | None, Option("--temperature", metavar="X", min=0, help="Sampling.")] = None,
    seed: Annotated[int | None, Option("--seed", metavar="N", help="Sampling, where it is supported.")] = None,
    name: Annotated[str | None, Option("--name", metavar="NAME", help="A name for the run.")] = None,
    timeout: Annotated[
        float | None, Option("--timeout", metavar="S", help="Seconds of its own, without waiting in line.")
    ] = None,
    allow_unpriced: Annotated[bool, Option("--allow-unpriced", help="Ask a model whose price is not known.")] = False,
) -> int:
    """Ask one question and print the answer."""
    from muster.app.ask import Question
    from muster.cli.answering import conclude
    from muster.cli.progress import Silence, display
    from muster.cli.question import Inquiry, put

    question = Question(
        agent=agent,
        prompt=_prompt(prompt),
        system=system,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        stream=sys.stdout.isatty() and not manner.json and not sending.batch,
    )
    inquiry = Inquiry(
        question=question,
        sending=sending,
        budget=budget,
        name=name,
        timeout=timeout,
        tells=not manner.quiet and not manner.json,
    )

    async def work(muster: "Muster") -> "Answer":
        return await put(muster, inquiry, display(manner, stays=False) if sending.batch else Silence())

    found = with_muster(manner, work, allow_unpriced=allow_unpriced, patience=patience, create=True)
    return conclude(manner, found, printed=question.stream)


def _prompt(given: str | None) -> str:
    from muster.domain.errors import BadArgument

    if given is None and (sys.stdin is None or sys.stdin.isatty()):
        raise BadArgument("there is no question", suggestions=("write it after the agent, or pipe it in",))
    try:
        text = sys.stdin.buffer.read().decode("utf-8") if given in (None, "-") else given
        text.encode("utf-8")
    except UnicodeError:
        raise BadArgument("the prompt is not UTF-8") from None
    if not text.strip():
        raise BadArgument("the prompt is empty", suggestions=("write it after the agent, or pipe it in",))
    return text
