"""Councils for people: the answer, the score matrix, and the story round by round."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from muster.app.councils.councils import CouncilAbstention, CouncilReport, CouncilRound, Evaluation, Injection
from muster.cli.terminal.output import clean
from muster.cli.terminal.table import GAP, Column, fitted, fitting
from muster.domain.money import usd_format
from muster.text.words import one_line

if TYPE_CHECKING:
    from rich.console import Console

MAX_CELL = 200  # characters
_BAR = 20  # characters of the longest bar
MAX_BARS = 12  # so that a council of many fits on a screen


def support_lines(support: Mapping[str, float]) -> Iterator[str]:
    """Yield a bar for each proposal, the most supported first."""
    most = max((abs(value) for value in support.values()), default=0.0) or 1.0
    width = max((len(name) for name in support), default=0)
    ranked = sorted(support.items(), key=lambda item: (-item[1], item[0]))
    for name, value in ranked[:MAX_BARS]:
        bar = ("█" if value > 0 else "░") * round(abs(value) / most * _BAR)
        yield clean(f"{name:<{width}}  {value:+.3f} {bar}")
    if len(ranked) > MAX_BARS:
        yield f"and {len(ranked) - MAX_BARS} with less support"


def tell_council(console: "Console", report: CouncilReport) -> None:
    """Print what a council came to: the answer first."""
    outcome = report.outcome
    synthesis = None if outcome is None else outcome.synthesis
    if synthesis is not None and synthesis.text:
        _say(console, synthesis.text)
        kept, lost = ", ".join(synthesis.kept), ", ".join(synthesis.lost)
        _say(
            console,
            f"\nsynthesis by {synthesis.agent}; dissent in it: {kept or 'none'}" + (f"; lost: {lost}" if lost else ""),
        )
    elif report.winner is not None:
        _say(console, report.winner.text)
    if synthesis is not None and synthesis.flaw:
        _say(console, f"there is no synthesis: {synthesis.flaw}")
    console.print()
    _say(console, report.verdict)
    if report.rounds:
        _tell_matrix(console, report.rounds[-1])
    _tell_doubts(console, report)
    _tell_baseline(console, report)
    _tell_costs(console, report)


def tell_trace(console: "Console", report: CouncilReport) -> None:
    """Print the story of a council, round by round."""
    _say(console, f"council {report.run.id}: {one_line(report.spec.question, MAX_CELL)}")
    for one in report.rounds:
        console.print()
        _say(console, f"Round {one.number}")
        _tell_injections(console, [told for told in report.injections if told.round_number == one.number])
        for proposal in one.proposals:
            _say(console, f"  {proposal.agent} proposes: {one_line(proposal.text, MAX_CELL)}")
            if report.as_read(proposal) != proposal.text:
                _say(console, f"    the others read: {one_line(report.as_read(proposal), MAX_CELL)}")
        _tell_missing(console, one)
        _tell_evaluations(console, one.evaluations)
        _tell_matrix(console, one)
    _tell_open(console, report)
    if report.open_calls:
        _say(console, f"\nnot answered yet: {', '.join(report.open_calls)}")
    console.print()
    _tell_doubts(console, report)
    _tell_baseline(console, report)
    _tell_costs(console, report)
    _say(console, report.verdict)


def _tell_missing(console: "Console", one: CouncilRound) -> None:
    for each in one.abstentions:
        _say(console, f"  {_why_missing(each)}")
    for rejected in one.score.rejections:
        target = f" for {rejected.target}" if rejected.target else ""
        _say(console, f"  the vote of {rejected.evaluator}{target} is rejected: {rejected.reason}")
    for evaluator, left_out in one.score.missing:
        _say(console, f"  {evaluator} does not weigh the proposal of {left_out}")


def _tell_injections(console: "Console", injections: Sequence[Injection]) -> None:
    for told in injections:
        _say(console, f"  a person tells all before {told.phase}: {one_line(told.text, MAX_CELL)}")


def _tell_open(console: "Console", report: CouncilReport) -> None:
    for phase in report.open_round:
        _say(console, f"\n{phase.title}")
        place = (phase.round_number, phase.record.phase)
        _tell_injections(console, [told for told in report.injections if (told.round_number, told.phase) == place])
        for proposal in phase.record.proposals:
            _say(console, f"  {proposal.agent} proposes: {one_line(proposal.text, MAX_CELL)}")
        _tell_evaluations(console, phase.record.evaluations)
        for each in phase.record.abstentions:
            _say(console, f"  {_why_missing(each)}")


def _tell_evaluations(console: "Console", evaluations: Sequence[Evaluation]) -> None:
    for evaluation in evaluations:
        for vote in evaluation.votes:
            weight = "abstains" if vote.weight is None else f"{vote.weight:+g}"
            critique = f": {one_line(vote.critique, MAX_CELL)}" if vote.critique else ""
            _say(console, f"  {evaluation.agent} → {vote.target} {weight}{critique}")


def _why_missing(one: CouncilAbstention) -> str:
    return f"{one.agent} has no part in {one.phase}: {one.cause} ({one_line(one.reason, MAX_CELL)})"


def _tell_matrix(console: "Console", one: CouncilRound) -> None:
    standings = one.score.standings
    cells = {(cell.evaluator, cell.target): cell.weight for cell in one.score.contributions}
    evaluators = sorted({cell.evaluator for cell in one.score.contributions})
    rows = [*(clean(name) for name in evaluators), "support", "controversy"]
    columns = [Column(f"round {one.number}", rows, right=False, folds=True, least=12)]
    for each in standings:
        given = [f"{cells[who, each.agent]:+g}" if (who, each.agent) in cells else "" for who in evaluators]
        column = [*given, f"{each.support:.3f}", f"{each.controversy:.2f}"]
        columns.append(Column(clean(one_line(each.agent, 24)), column))
    last = [column.name for column in reversed(columns[1:])]
    console.print(fitted(columns, last, console.width))
    left_out = len(columns) - len(fitting(columns, last, console.width, GAP))
    if left_out:
        _say(console, f"{left_out} with less support are not shown; see them all with --report html=FILE")
    for each in one.score.scaled:
        _say(console, f"the support of {each.agent} is multiplied by {each.factor:.3f}: it weighed nobody")
    if one.score.tied:
        _say(console, f"tie of {', '.join(one.score.tied)}, decided by {one.score.tie_break}")


def _tell_doubts(console: "Console", report: CouncilReport) -> None:
    result = report.result
    for dissent in () if result is None else result.dissent:
        why = one_line(dissent.critique, MAX_CELL) or "without a reason"
        prefers = f", prefers that of {dissent.preferred}" if dissent.preferred else ""
        _say(console, f"dissent: {dissent.agent} gives it {dissent.weight:+g}{prefers}: {why}")
    for claim in () if result is None else result.contested:
        said = "; ".join(
            f"{stance} by {', '.join(who)} ({one_line(reason, 80) or 'without a reason'})"
            for stance, reason, who in claim.opinions
        )
        _say(console, f"contested claim of {claim.agent}: {one_line(claim.claim, 120)}: {said}")
    for bias in report.biases:
        if bias.is_shown:
            low, high = bias.interval.low, bias.interval.high
            whose = f"of {bias.evaluator}" if bias.evaluator else "of all evaluators"
            _say(
                console, f"position bias {whose}: {bias.effect:+.2f} for the first proposal ({low:+.2f} to {high:+.2f})"
            )


def _tell_baseline(console: "Console", report: CouncilReport) -> None:
    outcome = report.outcome
    found = None if outcome is None else outcome.baseline
    if outcome is None or found is None:
        return
    usd = usd_format(outcome.spent, found.spent)
    costs = f"the council cost {usd(outcome.spent)}, {found.agent} alone {usd(found.spent)}"
    if found.score is None:
        _say(console, f"no baseline: {found.flaw}; {costs}")
    else:
        supports = ", ".join(f"{one.agent} {one.support:+.3f}" for one in found.score.standings)
        undecided = f"{found.undecided}; " if found.undecided else ""
        _say(console, f"baseline: {undecided}{supports}; {costs}")
    for one in found.missing:
        _say(console, f"  {_why_missing(one)}")


def _tell_costs(console: "Console", report: CouncilReport) -> None:
    usd = usd_format(*(one.cost for one in report.costs))
    columns = [
        Column("agent", [clean(one.agent) for one in report.costs], right=False, folds=True, least=12),
        Column("calls", [str(one.calls) for one in report.costs]),
        Column("tokens", [f"{one.tokens:,}" for one in report.costs]),
        Column("cost", [usd(one.cost) for one in report.costs]),
    ]
    console.print(fitted(columns, ("tokens",), console.width))


def _say(console: "Console", text: str) -> None:
    console.print(clean(text), soft_wrap=True)
