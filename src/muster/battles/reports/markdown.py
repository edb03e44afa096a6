"""Battles and scale tests in Markdown: what they came to first, then what was said."""

from collections.abc import Iterator, Sequence

from muster.battles.scale_summary import PairedComparison, ScaleReport
from muster.battles.summary import BattleReport
from muster.battles.values import BattleDecision
from muster.domain.call import Role
from muster.domain.money import show_usd
from muster.reporting.markdown import block, in_cell, inline
from muster.text.words import count, percent

MAX_MESSAGE = 20_000  # characters of a message


def battle_markdown(report: BattleReport) -> str:
    """Return the report of a battle as Markdown."""
    return "\n\n".join(_battle(report, "#")) + "\n"


def _battle(report: BattleReport, level: str) -> Iterator[str]:
    yield f"{level} Battle {report.run.id}"
    yield f"**{report.ending or report.run.state}**: {inline(report.verdict, 500)}"
    if report.detail and report.ending is not None:
        yield f"Detail: {inline(report.detail, 500)}"
    if report.spec.goal:
        yield f"{level}# Goal\n\n" + block(report.spec.goal, MAX_MESSAGE)
    usage = report.usage
    rows = [
        ["agent under test", in_cell(report.spec.agent)],
        ["counterpart", in_cell(report.spec.counterpart)],
        *(["shown with the first message", in_cell(each.label)] for each in report.spec.media),
        ["replies", f"{report.turns} of at most {report.spec.message_limit}"],
        ["tokens", f"{usage.tokens_in:,} in, {usage.tokens_out:,} out"],
        ["cost", show_usd(report.cost)],
    ]
    yield _table(["", ""], rows)
    yield f"{level}# Conversation"
    turn = 0
    for message in report.messages:
        who = f"{message.seq}. {'agent' if message.role is Role.ASSISTANT else 'counterpart'}"
        yield f"**{who}** {inline(message.agent) if message.agent else '(given)'}\n\n" + block(
            message.content, MAX_MESSAGE
        )
        if message.role is Role.ASSISTANT:
            turn += 1
            made = [one for one in report.decisions if one.turn == turn]
            if made:
                yield _table(["stage", "verdict", "confidence", "criteria", "reason"], [_row(one) for one in made])


def _row(one: BattleDecision) -> list[str]:
    confidence = "" if one.confidence is None else f"{one.confidence:.2f}"
    criteria = in_cell("; ".join(one.criteria), 300) if one.criteria else ""
    return [str(one.source), str(one.verdict), confidence, criteria, in_cell(one.reason, 300) if one.reason else ""]


def scale_markdown(report: ScaleReport) -> str:
    """Return the report of a scale test as Markdown."""
    return "\n\n".join(_scale(report)) + "\n"


def _scale(report: ScaleReport) -> Iterator[str]:
    yield f"# Scale test {report.run.id}"
    yield f"**{'Passed' if report.ok else 'Not passed'}**: {inline(report.verdict, 500)}"
    rows = [
        [name, str(number), f"{percent(report.intervals[name].low)} to {percent(report.intervals[name].high)}"]
        for name, number in report.counts.items()
    ]
    yield "## Endings\n\n" + _table(["ending", "battles", "95% interval"], rows)
    if report.unjudged:
        why = inline(report.unjudged_reason, 500)
        yield f"{count(report.unjudged, 'battle')} came to the limit and {_be(report.unjudged)} judged by nobody: {why}"
    if len(report.rates) > 1:
        rates = [
            [
                in_cell(one.agent),
                in_cell(one.prompt) if one.prompt else "",
                f"{one.reached} of {one.battles}",
                f"{percent(one.interval.low)} to {percent(one.interval.high)}",
            ]
            for one in report.rates
        ]
        yield "## Agents and prompts\n\n" + _table(["agent", "prompt", "goals reached", "95% interval"], rates)
    yield "## Figures\n\n" + _table(["", ""], list(_figures(report)))
    yield from _revision(report)
    yield "## Battles\n\n" + _table(
        ["number", "agent", "goal", "ending", "replies", "conversation"],
        [
            [
                str(one.plan.number),
                in_cell(one.plan.agent),
                in_cell(one.plan.spec.goal, 200) if one.plan.spec.goal else "",
                one.ended_as,
                str(one.report.turns if one.report else 0),
                in_cell(one.report.run.id) if one.report else "",
            ]
            for one in report.battles
        ],
    )
    for sample in report.samples:
        yield from _battle(sample, "##")


def _figures(report: ScaleReport) -> Iterator[list[str]]:
    turns, usage = report.turns, report.usage
    if turns is not None:
        yield ["replies", f"mean {turns.mean:.1f}, median {turns.median:g}, from {turns.least} to {turns.most}"]
    times = ", ".join(f"p{q} {value:,.0f}" for q, value in report.latency.items() if value is not None)
    if times:
        yield ["time of a reply in ms", times]
    yield ["tokens", f"{usage.tokens_in:,} in, {usage.tokens_out:,} out"]
    yield ["cost", show_usd(report.cost)]


def _revision(report: ScaleReport) -> Iterator[str]:
    found = report.revision
    if found is None:
        return
    if not found.prompt:
        yield f"## Revised prompt\n\nNone was proposed: {inline(found.flaw, 500)}"
        return
    reasons = "\n".join(f"- {inline(one, 500)}" for one in found.reasons)
    yield f"## Revised prompt, proposed by {inline(found.agent)}\n\n{block(found.prompt, MAX_MESSAGE)}\n\n{reasons}"
    yield revision_words(report)


def revision_words(report: ScaleReport) -> str:
    """Return what is known about the revised prompt: nothing, unless it was played."""
    found = report.comparison
    if found is None:
        return "It was not tried: nothing says that it is better. --try-revised plays the same goals with it."
    return (
        f"Tried on the same goals, {count(found.pairs, 'pair')}: {found.before} reached before, {found.after} with it "
        f"({found.gained} gained, {found.lost} lost; exact McNemar test {found.p_words}): {found.word}."
        f"{_left_out(found)}"
    )


def _left_out(found: PairedComparison) -> str:
    """Return which pairs are not compared, and why."""
    reasons = {
        "since nobody judged a side": found.unjudged,
        "since a side ended by error, budget, timeout or cancel": found.left_out - found.unjudged,
    }
    why = ", ".join(f"{number} {reason}" for reason, number in reasons.items() if number)
    return f" {count(found.left_out, 'pair')} {_be(found.left_out)} left out: {why}." if why else ""


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
