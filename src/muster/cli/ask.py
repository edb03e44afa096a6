"""`muster ask`: one question to one agent; standard output holds the answer and nothing else."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.cli.frame import command, with_muster
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with, note, warn

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.domain.call import Reply
    from muster.domain.run import Run

WARNINGS = {
    "cut": "the answer was cut: it is as long as --max-tokens allows",
    "refused": "the agent refused to answer",
    "empty": "the answer is empty",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "ask")(ask)


def ask(
    manner: Manner,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="anthropic/MODEL, openai/MODEL, sim/echo, …")],
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The question; - reads it from standard input.")],
    system: Annotated[str, typer.Option("--system", metavar="TEXT", help="What the agent is told first.")] = "",
    budget: Annotated[str | None, typer.Option("--budget", metavar="USD", help="The most it may cost.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", min=1, max=10_000_000, help="The longest answer.")
    ] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", metavar="X", min=0, help="Sampling.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Sampling, where it is supported.")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="A name for the run.")] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="Seconds of its own, without waiting in line.")
    ] = None,
    allow_unpriced: Annotated[
        bool, typer.Option("--allow-unpriced", help="Ask a model whose price is not known.")
    ] = False,
) -> int:
    """Ask one question and print the answer."""
    from muster.cli.question import Question, put

    question = Question(
        agent=agent,
        prompt=_prompt(prompt),
        system=system,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        budget=budget,
        name=name,
        timeout=timeout,
        streams=sys.stdout.isatty() and not manner.json,
        tells=not manner.quiet and not manner.json,
    )

    async def work(muster: "Muster") -> "tuple[Run, Reply]":
        return await put(muster, question)

    run, reply = with_muster(manner, work, allow_unpriced=allow_unpriced)
    return _conclude(manner, run, reply, printed=question.streams)


def _prompt(given: str) -> str:
    from muster.domain.errors import BadArgument

    try:
        text = sys.stdin.buffer.read().decode("utf-8") if given == "-" else given
        text.encode("utf-8")
    except UnicodeError:
        raise BadArgument("the prompt is not UTF-8") from None
    if not text.strip():
        raise BadArgument("the prompt is empty", suggestions=("write it after the agent, or - to read standard input",))
    return text


def _conclude(manner: Manner, run: "Run", reply: "Reply", *, printed: bool) -> int:
    """Print what is left to print; a reply that is not good is told and makes the exit code 1."""
    quality = str(reply.quality)
    if manner.json:
        return _answer_json(manner, run, reply)
    if not printed:
        sys.stdout.write(reply.text if reply.text.endswith("\n") else reply.text + "\n")
        sys.stdout.flush()
    if quality in WARNINGS:
        warn(f"warning: {WARNINGS[quality]}")
    note(manner, _footer(run, reply))
    return 1 if quality in WARNINGS else 0


def _answer_json(manner: Manner, run: "Run", reply: "Reply") -> int:
    data, quality = _data(run, reply), str(reply.quality)
    if quality not in WARNINGS:
        answer(manner, data, lambda console: None)
        return 0
    return fail_with(manner, {"code": quality, "message": WARNINGS[quality], "suggestions": []}, 1, data)


def _data(run: "Run", reply: "Reply") -> dict[str, Any]:
    from muster.domain.money import to_usd

    return {
        "run": run.id,
        "text": reply.text,
        "quality": str(reply.quality),
        "stop": str(reply.stop),
        "model": reply.model,
        "tokens": {"input": reply.usage.all_input, "output": reply.usage.output},
        "cost_usd": to_usd(reply.cost),
        "uncertain_usd": to_usd(run.spent.uncertain),
        "seconds": round(reply.timings.wire, 3),
        "attempts": reply.attempt,
    }


def _footer(run: "Run", reply: "Reply") -> str:
    from muster.domain.money import show_usd

    parts = [
        reply.model,
        f"{reply.usage.all_input} in, {reply.usage.output} out",
        show_usd(reply.cost),
        f"{reply.timings.wire:.1f} s",
        f"run {run.id}",
    ]
    if run.spent.uncertain:
        parts.insert(3, f"{show_usd(run.spent.uncertain)} uncertain")
    return " · ".join(parts)
