"""The options that choose what a suite run is about: cases, agents, judge. Shared by `run` and `plan`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.bundle import bundle
from muster.cli.line import Argument, Option

if TYPE_CHECKING:
    from muster.formats.suite_spec import SuiteSpec

# What is left open is as it was in the run that is replayed or reused, or whose failed cases are run again: who is
# asked and how, and all that decides whether a case passes, so that the two runs can be compared.
INHERITED = (
    "agents", "prompts", "answers", "judge", "judge_samples", "judge_dispatch", "epochs", "evaluator", "threshold",
    "max_tokens", "temperature", "seed",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What was said on the command line; what was not is None."""

    given: dict[str, Any]
    only_failed: str | None = None

    def spec(self, before: "SuiteSpec | None" = None, **more: Any) -> "SuiteSpec":
        """Make the spec, with what was left open taken from an earlier run."""
        from muster.formats.suite_spec import read_spec

        stored = {} if before is None else before.stored()
        inherited = {name: stored[name] for name in INHERITED if name in stored}
        said = {name: value for name, value in (self.given | more).items() if value not in (None, [])}
        if "agents" in said or "prompts" in said:
            inherited.pop("answers", None)
        return read_spec(inherited | said)


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
) -> Chosen:
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
    return Chosen(given=given, only_failed=only_failed)


chosen = bundle("chosen", chosen_of)
