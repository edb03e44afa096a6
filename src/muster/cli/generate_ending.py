"""What `muster generate` does at its end: writes the cases, and says how many there are and why not more."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muster.app.generation import write_cases, yaml_text
from muster.cli.clean import clean
from muster.cli.manner import Manner
from muster.cli.speech import answer, console, fail_with, note
from muster.domain.money import show_usd, to_usd
from muster.domain.run import Run

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app.generation import Generation


def conclude(manner: Manner, run: Run, wish: "Generation") -> int:
    """Write what was generated and tell it; fewer cases than were asked for make the exit code 1."""
    result: Mapping[str, Any] = run.result
    cases = result["cases"]
    write_cases(wish, run)
    data = _data(run, result, wish)
    if not manner.json:
        _tell(console(), cases, wish)
        note(manner, _footer(run, result))
    over = run.overdraft
    if over is not None:
        return fail_with(manner, over, 1, data)
    if len(cases) < result["asked"]:
        return fail_with(manner, _shortfall(run, result), 1, data)
    if manner.json:
        answer(manner, data, lambda _: None)
    return 0


def _data(run: Run, result: Mapping[str, Any], wish: "Generation") -> dict[str, Any]:
    return {
        "run": run.id,
        "file": str(wish.file) if wish.file is not None and result["cases"] else None,
        "generated": len(result["cases"]),
        **{name: result[name] for name in ("skill", "asked", "cases", "rounds", "rejected", "reasons")},
        "cost_usd": to_usd(run.spent.billed + run.spent.imputed),
    }


def _tell(out: "Console", cases: list[Mapping[str, Any]], wish: "Generation") -> None:
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
