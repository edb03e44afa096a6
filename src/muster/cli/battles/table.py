"""Battles and scale tests for people: the conversation with its decisions, and the figures of many."""

from typing import TYPE_CHECKING

from muster.app.battles.battles import BattleDecision, BattleMessage, BattleReport
from muster.app.battles.scales import ScaleReport, revision_words
from muster.cli.terminal.output import clean
from muster.cli.terminal.table import Column, fitted
from muster.domain.call import Role
from muster.domain.money import show_usd
from muster.text.words import one_line, percent

if TYPE_CHECKING:
    from rich.console import Console

INDENT = " " * 6  # of decisions below the reply that they are about
MAX_REASON = 200  # characters
MAX_GOAL = 60


def message_line(message: BattleMessage, most: int | None) -> str:
    """Put a message on one line, or with no limit on as many as it has."""
    who = "agent      " if message.role is Role.ASSISTANT else "counterpart"
    text = message.content if most is None else one_line(message.content, most)
    return f"{message.seq:>3} {who}  {text}"


def decision_line(decision: BattleDecision, most: int = MAX_REASON) -> str:
    """Put a decision on one short line."""
    sure = "" if decision.confidence is None else f" ({decision.confidence:.2f})"
    by = f" {decision.model}" if decision.model else ""
    why = decision.reason or "; ".join(decision.criteria)
    return one_line(f"turn {decision.turn}, {decision.source}{by}: {decision.verdict}{sure}  {why}".rstrip(), most)


def tell_battle(console: "Console", report: BattleReport) -> None:
    """Print a battle: what was said, what was decided, and what it came to."""
    turn = 0
    for message in report.messages:
        _say(console, message_line(message, None))
        if message.role is Role.ASSISTANT:
            turn += 1
            for decision in report.decisions:
                if decision.turn == turn:
                    _say(console, INDENT + decision_line(decision))
    console.print()
    _say(console, report.verdict)
    usage = report.usage
    _say(
        console,
        f"{usage.tokens_in:,} tokens in, {usage.tokens_out:,} out, {show_usd(report.cost)}; "
        f"run {report.run.id}, {report.run.state}",
    )


def tell_scale(console: "Console", report: ScaleReport) -> None:
    """Print a scale test: its endings, its battles, and the revised prompt."""
    numbers = report.counts
    shown = [name for name, number in numbers.items() if number]
    columns = [
        Column("ending", shown, right=False),
        Column("battles", [str(numbers[name]) for name in shown]),
        Column("95% interval", [_interval(report, name) for name in shown]),
    ]
    if shown:
        console.print(fitted(columns, (), console.width))
    if len(report.rates) > 1:
        for one in report.rates:
            low, high = percent(one.interval.low), percent(one.interval.high)
            name = f"{one.agent} {one.prompt}".strip()
            _say(console, f"{name}: {one.reached} of {one.battles} goals reached ({low} to {high})")
    _tell_battles(console, report)
    if report.unjudged:
        _say(console, f"judged by nobody: {report.unjudged_reason}")
    _tell_figures(console, report)
    _tell_revision(console, report)
    console.print()
    _say(console, report.verdict)


def _interval(report: ScaleReport, name: str) -> str:
    found = report.intervals[name]
    return f"{percent(found.low)} to {percent(found.high)}"


def _tell_battles(console: "Console", report: ScaleReport) -> None:
    battles = report.battles
    columns = [
        Column("battle", [str(one.plan.number) for one in battles]),
        Column("agent", [clean(one.plan.agent) for one in battles], right=False, folds=True, least=12),
        Column("ending", [one.ended_as for one in battles], right=False),
        Column("replies", [str(one.report.turns if one.report else 0) for one in battles]),
        Column("cost", [show_usd(one.report.cost) if one.report else "" for one in battles]),
        Column("goal", [clean(one_line(one.plan.spec.goal, MAX_GOAL)) for one in battles], right=False, folds=True),
        Column("conversation", [one.report.run.id if one.report else "" for one in battles], right=False),
    ]
    console.print(fitted(columns, ("cost", "goal"), console.width))


def _tell_figures(console: "Console", report: ScaleReport) -> None:
    turns, usage = report.turns, report.usage
    times = ", ".join(f"p{q} {value:,.0f} ms" for q, value in report.latency.items() if value is not None)
    if turns is not None:
        _say(console, f"replies: mean {turns.mean:.1f}, from {turns.least} to {turns.most}; time of one: {times}")
    _say(console, f"{usage.tokens_in:,} tokens in, {usage.tokens_out:,} out, {show_usd(report.cost)}")


def _tell_revision(console: "Console", report: ScaleReport) -> None:
    found = report.revision
    if found is None:
        return
    console.print()
    if not found.prompt:
        _say(console, f"no revised prompt: {found.flaw}")
        return
    _say(console, f"revised prompt, proposed by {found.agent}:\n{found.prompt}")
    for reason in found.reasons:
        _say(console, f"- {reason}")
    _say(console, revision_words(report))


def _say(console: "Console", text: str) -> None:
    console.print(clean(text), soft_wrap=True)
