"""`muster generate`: test cases written by a model, for a new suite or at the end of one."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.app import Muster
from muster.app.suites.generation import Generation, generation, write_cases, yaml_text
from muster.cli.completers import agent_names
from muster.cli.drive import drive
from muster.cli.line import Option
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean, console, fail_with, note
from muster.cli.terminal.progress import display
from muster.domain.money import show_usd, to_usd
from muster.domain.run import Run

if TYPE_CHECKING:
    from rich.console import Console


MOST = 200


def generate(
    common: CommonOptions,
    agent: Annotated[
        str, Option("--agent", metavar="AGENT", complete=agent_names, help="The agent that writes the cases.")
    ],
    skill: Annotated[str, Option("--skill", metavar="NAME", help="The name of a new suite and of what it tests.")] = "",
    description: Annotated[
        str,
        Option("--description", metavar="TEXT", help="What the new suite tests, in a sentence; needed with --skill."),
    ] = "",
    extend: Annotated[Path | None, Option("--extend", metavar="DIR", help="Add the cases to this suite.")] = None,
    count: Annotated[int, Option("--count", metavar="N", min=1, max=MOST, help="How many cases.")] = 5,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the cases; write no file.")] = False,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="DIR", help="The folder of a new suite; default ./NAME.")
    ] = None,
    budget: Annotated[str | None, Option("--budget", metavar="USD", help="The budget in dollars, a hard cap.")] = None,
    allow_unpriced: Annotated[bool, Option("--allow-unpriced", help="Allow a model without a known price.")] = False,
) -> int:
    """Generate test cases with a model; each is validated and compared with the existing ones."""
    wish = generation(agent, count, skill=skill, description=description, extend=extend, output=output, dry_run=dry_run)

    async def work(muster: Muster) -> Run:
        muster.agents.require(agent)
        handle = await muster.start("generate", wish.spec(), budget_usd=budget)
        return await drive(muster, handle, display(common, stays=False))

    run = with_muster(common, work, allow_unpriced=allow_unpriced, create=True)
    return conclude(common, run, wish)


def conclude(common: CommonOptions, run: Run, wish: Generation) -> int:
    """Write what was generated and tell it; fewer cases than were asked for make the exit code 1."""
    result: Mapping[str, Any] = run.result
    cases = result["cases"]
    write_cases(wish, run)
    data = _data(run, result, wish)
    if not common.json:
        _tell(console(), cases, wish)
        note(common, _footer(run, result))
    over = run.overdraft
    if over is not None:
        return fail_with(common, over, 1, data)
    if len(cases) < result["asked"]:
        return fail_with(common, _shortfall(run, result), 1, data)
    if common.json:
        answer(common, data, lambda _: None)
    return 0


def _data(run: Run, result: Mapping[str, Any], wish: Generation) -> dict[str, Any]:
    return {
        "run": run.id,
        "file": str(wish.file) if wish.file is not None and result["cases"] else None,
        "generated": len(result["cases"]),
        **{name: result[name] for name in ("skill", "asked", "cases", "rounds", "rejected", "reasons")},
        "cost_usd": to_usd(run.spent.billed + run.spent.imputed),
    }


def _tell(out: "Console", cases: list[Mapping[str, Any]], wish: Generation) -> None:
    if not cases:
        return
    if wish.file is None:
        out.print(clean(yaml_text(cases)), end="", soft_wrap=True)
        return
    for case in cases:
        out.print(f"{case['id']}  {clean(case['description'])}", soft_wrap=True)
    out.print(f"wrote {_counted(len(cases))} to {wish.file}", soft_wrap=True)


def _footer(run: Run, result: Mapping[str, Any]) -> str:
    rejected = ", ".join(f"{count} {kind}" for kind, count in result["rejected"].items())
    rounds = f"{result['rounds']} round{'' if result['rounds'] == 1 else 's'}"
    parts = [f"rejected: {rejected}" if rejected else "", rounds, show_usd(run.spent.billed + run.spent.imputed)]
    return " · ".join([*(part for part in parts if part), f"run {run.id}"])


def _shortfall(run: Run, result: Mapping[str, Any]) -> dict[str, Any]:
    made, asked = len(result["cases"]), result["asked"]
    why = result["failure"] or next(iter(result["reasons"]), "")
    message = f"only {made} of {_counted(asked)} could be generated" if made else "no case could be generated"
    return {
        "code": "too_few" if made else "nothing_generated",
        "message": f"{message}: {why}" if why else message,
        "suggestions": [f"muster runs show {run.id} --calls"],
    }


def _counted(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"
