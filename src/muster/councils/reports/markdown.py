"""A council in Markdown: the answer first, then how it came about."""

from collections.abc import Iterator, Sequence

from muster.councils.rules.outcome import CouncilRound
from muster.councils.rules.values import CouncilAbstention
from muster.councils.summary import CouncilReport, UncountedPhase
from muster.domain.money import show_usd
from muster.reporting.markdown import block, in_cell, inline
from muster.text.words import count

MAX_PROPOSAL = 20_000  # characters of a proposal


def council_markdown(report: CouncilReport) -> str:
    """Return the report as Markdown."""
    return "\n\n".join(_parts(report)) + "\n"


def _parts(report: CouncilReport) -> Iterator[str]:
    yield f"# Council {report.run.id}"
    yield f"**{report.word}**: {inline(report.verdict, 500)}"
    yield "## Question\n\n" + block(report.spec.question, MAX_PROPOSAL)
    if report.winner is not None:
        yield f"## Winning proposal, by {inline(report.winner.agent)}\n\n" + block(report.winner.text, MAX_PROPOSAL)
    yield from _synthesis(report)
    yield from _dissent(report)
    yield from _contested(report)
    if report.injections:
        told = [[str(one.round_number), str(one.phase), in_cell(one.text, 500)] for one in report.injections]
        yield "## What people said\n\n" + _table(["round", "before", "text"], told)
    for one in report.rounds:
        yield from _round(one)
    for phase in report.open_round:
        yield from _uncounted(phase)
    yield from _missing(report)
    yield from _bias(report)
    yield from _baseline(report)
    costs = [[in_cell(one.agent), str(one.calls), f"{one.tokens:,}", show_usd(one.cost)] for one in report.costs]
    yield "## Cost\n\n" + _table(["agent", "calls", "tokens written", "cost"], costs)


def _synthesis(report: CouncilReport) -> Iterator[str]:
    found = None if report.outcome is None else report.outcome.synthesis
    if found is None:
        return
    if found.flaw:
        yield f"## Synthesis\n\nThere is none: {inline(found.flaw, 500)}"
        return
    kept = ", ".join(inline(name) for name in found.kept) or "none"
    lost = f"; lost: {', '.join(inline(name) for name in found.lost)}" if found.lost else ""
    text = block(found.text, MAX_PROPOSAL)
    yield f"## Synthesis, by {inline(found.agent)}\n\nDissent that it keeps: {kept}{lost}\n\n{text}"


def _dissent(report: CouncilReport) -> Iterator[str]:
    found = () if report.result is None else report.result.dissent
    if found:
        rows = [
            [in_cell(one.agent), f"{one.weight:g}", in_cell(one.preferred or "nothing"), in_cell(one.critique, 500)]
            for one in found
        ]
        yield "## Dissent\n\n" + _table(["agent", "weight of the winner", "prefers", "critique"], rows)


def _contested(report: CouncilReport) -> Iterator[str]:
    found = () if report.result is None else report.result.contested
    if found:
        rows = [
            [
                in_cell(one.agent),
                in_cell(one.claim, 300),
                str(stance),
                ", ".join(in_cell(name) for name in who),
                in_cell(reason, 300),
            ]
            for one in found
            for stance, reason, who in one.opinions
        ]
        yield "## Contested claims\n\n" + _table(["claim of", "claim", "stance", "by", "reason"], rows)


def _round(one: CouncilRound) -> Iterator[str]:
    names = [standing.agent for standing in one.score.standings]
    cells = {(cell.evaluator, cell.target): cell for cell in one.score.contributions}
    evaluators = sorted({cell.evaluator for cell in one.score.contributions})
    rows = [
        [in_cell(who), *(f"{cells[who, name].weight:g}" if (who, name) in cells else "" for name in names)]
        for who in evaluators
    ]
    rows.append(["**support**", *(f"{standing.support:.3f}" for standing in one.score.standings)])
    rows.append(["controversy", *(f"{standing.controversy:.2f}" for standing in one.score.standings)])
    tie = (
        f"\n\nTie of {', '.join(map(inline, one.score.tied))}, decided by {one.score.tie_break}."
        if one.score.tied
        else ""
    )
    scaled = "".join(
        f"\n\nThe support of {inline(each.agent)} is multiplied by {each.factor:.3f}: it weighed nobody."
        for each in one.score.scaled
    )
    yield f"## Round {one.number}\n\n" + _table(["evaluator", *map(in_cell, names)], rows) + scaled + tie


def _uncounted(phase: UncountedPhase) -> Iterator[str]:
    record = phase.record
    yield f"## {phase.title}"
    for one in record.proposals:
        yield f"Proposal of {inline(one.agent)}:\n\n{block(one.text, MAX_PROPOSAL)}"
    votes = [
        [in_cell(each.agent), in_cell(vote.target), _weight(vote.weight), in_cell(vote.critique, 500)]
        for each in record.evaluations
        for vote in each.votes
    ]
    if votes:
        yield _table(["evaluator", "proposal of", "weight", "critique"], votes)
    if record.abstentions:
        yield _table(["phase", "agent", "cause", "reason"], [_missing_cells(one) for one in record.abstentions])


def _weight(weight: float | None) -> str:
    return "abstains" if weight is None else f"{weight:+g}"


def _missing(report: CouncilReport) -> Iterator[str]:
    rows = [[str(one.number), *_missing_cells(each)] for one in report.rounds for each in one.abstentions]
    rows += [
        [
            str(one.number),
            "evaluate",
            in_cell(each.evaluator),
            "rejected",
            in_cell(f"{each.target}: {each.reason}", 300),
        ]
        for one in report.rounds
        for each in one.score.rejections
    ]
    if rows:
        yield "## Who had no part\n\n" + _table(["round", "phase", "agent", "cause", "reason"], rows)


def _missing_cells(one: CouncilAbstention) -> list[str]:
    return [str(one.phase), in_cell(one.agent), str(one.cause), in_cell(one.reason, 300)]


def _bias(report: CouncilReport) -> Iterator[str]:
    if report.biases:
        rows = [
            [
                in_cell(one.evaluator) if one.evaluator else "all",
                str(one.evaluations),
                f"{one.effect:+.3f}",
                f"{one.interval.low:+.3f} to {one.interval.high:+.3f}",
                "yes" if one.is_shown else "no",
            ]
            for one in report.biases
        ]
        yield "## Position bias\n\n" + _table(["evaluator", "evaluations", "effect", "95 %", "shown"], rows)


def _baseline(report: CouncilReport) -> Iterator[str]:
    outcome = report.outcome
    found = None if outcome is None else outcome.baseline
    if outcome is None or found is None:
        return
    costs = (
        f"{inline(found.agent)} was asked alone, {count(found.asked, 'time')}. "
        f"The council cost {show_usd(outcome.spent)}, {inline(found.agent)} alone {show_usd(found.spent)}."
    )
    if found.score is None:
        yield f"## Baseline\n\nThere is none: {inline(found.flaw, 500)}\n\n{costs}"
    else:
        rows = [[in_cell(one.agent), f"{one.support:.3f}"] for one in found.score.standings]
        undecided = f"\n\n{inline(found.undecided)}." if found.undecided else ""
        yield f"## Baseline\n\n{costs}\n\n" + _table(["answer", "support"], rows) + undecided
    if found.missing:
        yield _table(["phase", "agent", "cause", "reason"], [_missing_cells(one) for one in found.missing])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
