"""What a model is told first of runs of kinds that have more to say than the verdict of a report, or an output."""

from muster.app.councils.councils import council_view
from muster.app.parts.parts import MusterParts
from muster.app.views.battles import battle_status_view, scale_status_view, scale_view
from muster.app.views.chains import progress_view
from muster.domain.call import Quality
from muster.domain.canonical import JsonObject
from muster.domain.run import Run, RunState
from muster.text.views import View, plain


async def outline_of_question(muster: MusterParts, run: Run) -> JsonObject:
    """Return the answer to a question, and what is wrong with it: it was cut, refused or empty."""
    quality = run.result.get("quality") if isinstance(run.result, dict) else None
    return {"output": await muster.questions.output(run), "quality": None if quality == Quality.GOOD else quality}


async def outline_of_battle(muster: MusterParts, run: Run) -> JsonObject:
    """Return how far a battle is, and how it ended."""
    view = battle_status_view(await muster.battles.status(run.id))
    return {"turns": view.turn, "messages": view.message_count, "ending": view.ended_reason}


async def outline_of_scale(muster: MusterParts, run: Run) -> JsonObject:
    """Return how far a scale test is, and what it has measured."""
    report = await muster.battles.scales.status(run.id)
    view = scale_view(report) if run.state is RunState.COMPLETED else None
    return _picked(scale_status_view(report), "completed", "total", "counts", "conversationIds") | {
        "verdict": None if view is None else view.summary,
        "goal_rate": None if view is None else view.goal_rate,
        "revised_prompt": None if view is None else view.revised_prompt,
    }


async def outline_of_chain(muster: MusterParts, run: Run) -> JsonObject:
    """Return the steps of a chain, and where it is."""
    view = plain(progress_view(await muster.chains.progress(run.id)))
    told = ("name", "status", "output", "skipped", "error")
    return {
        "completed_steps": view["completed_steps"],
        "total_steps": view["total_steps"],
        "steps": [{name: one[name] for name in told if one[name] not in (None, [], {}, "")} for one in view["steps"]],
        "current_step": view["current_name"],
        **{name: view[name] for name in ("partial_output", "rows")},
        **{name: view[name] for name in ("branch", "summary", "repository_changes", "repository_unknown")},
    }


async def outline_of_council(muster: MusterParts, run: Run) -> JsonObject:
    """Return what a council decided, and who disagrees."""
    view = plain(council_view(await muster.councils.trace(run.id)))
    winner, synthesis = view["winner"] or {}, view["synthesis"] or {}
    return {
        "verdict": view["verdict"],
        "winner": winner.get("agent"),
        "output": synthesis.get("text") or winner.get("text"),
        "dissent": view["dissent"],
        "rounds": len(view["rounds"]),
    }


def _picked(view: View, *names: str) -> JsonObject:
    shown = plain(view)
    return {name: shown[name] for name in names}
