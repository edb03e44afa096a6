"""The options that choose what a suite run is about: cases, agents, judge. Shared by `run` and `plan`."""

from typing import TYPE_CHECKING, Annotated

from muster.cli.bundle import bundle
from muster.cli.line import Argument, Option

if TYPE_CHECKING:
    from muster.app.suites import SuiteChoice


def chosen_of(
    paths: Annotated[list[str], Argument(metavar="PATH…", help="Suites: files, or folders that hold them.")],
    agent: Annotated[
        list[str] | None, Option("--agent", "-a", metavar="A", help="Who is tested; several are ranked.")
    ] = None,
    prompt: Annotated[
        list[str] | None,
        Option("--prompt", metavar="FILE", help="A system prompt to test instead of prompt.md; several are ranked."),
    ] = None,
    judge: Annotated[str | None, Option("--judge", metavar="J", help="The agent that judges.")] = None,
    judge_samples: Annotated[
        int | None, Option("--judge-samples", metavar="N", min=1, help="How often it is asked (1).")
    ] = None,
    judge_dispatch: Annotated[
        str | None,
        Option("--judge-dispatch", metavar="live|batch", help="How it is asked, if not like the rest."),
    ] = None,
    epochs: Annotated[
        int | None, Option("--epochs", metavar="N", min=1, help="How often each case is asked (1).")
    ] = None,
    case_filter: Annotated[str | None, Option("--filter", metavar="GLOB", help="Only cases whose id matches.")] = None,
    tags: Annotated[str | None, Option("--tags", metavar="A,B", help="Only cases with one of these tags.")] = None,
    evaluator: Annotated[
        str | None,
        Option("--evaluator", metavar="E", help="rules, golden, process, judge or all, not each case's own."),
    ] = None,
    threshold: Annotated[
        float | None, Option("--threshold", metavar="X", min=0, max=1, help="The score that passes (0.7).")
    ] = None,
    max_tokens: Annotated[
        int | None, Option("--max-tokens", metavar="N", min=1, max=10_000_000, help="The longest answer.")
    ] = None,
    temperature: Annotated[float | None, Option("--temperature", metavar="X", min=0, help="Sampling.")] = None,
    seed: Annotated[int | None, Option("--seed", metavar="N", help="Sampling, where it is supported.")] = None,
    only_failed: Annotated[
        str | None,
        Option(
            "--only-failed",
            metavar="RUN|FILE",
            help="Only what did not pass there; agents, judge, epochs, threshold … as there, unless given here.",
        ),
    ] = None,
) -> "SuiteChoice":
    """Collect what was given."""
    given = {
        "path": paths,
        "agents": agent,
        "prompts": prompt,
        "judge": judge,
        "judge_samples": judge_samples,
        "judge_dispatch": judge_dispatch,
        "epochs": epochs,
        "filter": case_filter,
        "tags": [tag.strip() for tag in tags.split(",") if tag.strip()] if tags else None,
        "evaluator": evaluator,
        "threshold": threshold,
        "max_tokens": max_tokens,
        "temperature": temperature,
        "seed": seed,
    }
    from muster.app.suites import SuiteChoice

    return SuiteChoice(given=given, only_failed=only_failed)


chosen = bundle("chosen", chosen_of)
