"""A council as one HTML file that fetches nothing and runs no script: the answer, the matrix, how support moved."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from muster import __version__
from muster.councils.reports.chart import support_chart
from muster.councils.rules.outcome import CouncilRound
from muster.councils.rules.scoring import Contribution
from muster.councils.rules.values import CouncilAbstention, Evaluation, Proposal
from muster.councils.summary import CouncilReport, UncountedPhase
from muster.domain.money import show_usd
from muster.domain.run import TERMINAL
from muster.reporting.look import TOKENS
from muster.text.secrets.redaction import redact
from muster.text.words import count, moment, shorten

MAX_PROPOSAL = 50_000  # characters of a proposal
MAX_TITLE = 200  # characters of a question that are its title


def council_html(report: CouncilReport) -> str:
    """Return the page."""
    style = TOKENS + (files("muster.councils.reports") / "page.css").read_text(encoding="utf-8")
    named = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{named}'; base-uri 'none'; form-action 'none'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>Council {_text(report.run.id)}</title><style>{style}</style>"
    )
    body = "\n".join(_sections(report))
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _sections(report: CouncilReport) -> Iterator[str]:
    yield _header(report)
    yield "<main>"
    if report.winner is not None:
        title = f"{'Winning proposal' if report.ok else 'Ahead so far'}, by {_text(report.winner.agent)}"
        yield _card(title, f'<p class="text">{_text(report.winner.text)}</p>')
    yield from _synthesis(report)
    yield from _dissent(report)
    if report.rounds:
        chart = support_chart(report.rounds, report.convictions)
        yield _card("How support moved", f'<div class="scroll">{chart}</div>')
    yield from _contested(report)
    if report.injections:
        told = [[str(one.round_number), str(one.phase), one.text] for one in report.injections]
        yield _card("What people said", _table(["round", "before", "text"], told))
    for one in report.rounds:
        yield _card(f"Round {one.number}", _matrix(one) + _proposals(one.proposals, one.evaluations))
    for phase in report.open_round:
        yield _card(_text(phase.title), _uncounted(phase))
    yield from _missing(report)
    yield from _bias(report)
    yield from _baseline(report)
    yield _costs(report)
    yield f"</main><footer>Made by muster {__version__} from the stored run {_text(report.run.id)}.</footer>"


def _header(report: CouncilReport) -> str:
    run = report.run
    kind, word = ("ok" if report.ok else "", report.word)
    if run.state not in TERMINAL:
        kind, word = "pending", str(run.state)
    facts = {
        "Run": run.id,
        "State": str(run.state),
        "Rounds": f"{len(report.rounds)} of at most {report.spec.rounds}",
        "Members": str(len(report.spec.members)),
        "Started": (moment(run.started_at) or "not yet").replace("T", " ")[:19],
        "Cost": str(run.cost),
    }
    listed = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.items())
    return (
        f'<header class="card verdict {kind}"><div class="word">{_text(word)}</div>{_question(report.spec.question)}'
        f'<p>{_text(report.verdict)}</p><dl class="facts">{listed}</dl></header>'
    )


def _question(question: str) -> str:
    """Return the first line as the title, and all of it behind a line to open if there is more."""
    whole = question.strip()
    title = shorten(whole.partition("\n")[0], MAX_TITLE)
    more = f'<details><summary>Whole question</summary><p class="text">{_text(whole)}</p></details>'
    return f"<h1>{_text(title)}</h1>{more if title != whole else ''}"


def _synthesis(report: CouncilReport) -> Iterator[str]:
    found = None if report.outcome is None else report.outcome.synthesis
    if found is None:
        return
    if found.flaw:
        yield _card("Synthesis", f"<p>There is none: {_text(found.flaw)}</p>")
        return
    kept = f"It keeps the dissent of {_text(', '.join(found.kept))}." if found.kept else "There is no dissent in it."
    lost = f" <strong>It lost the dissent of {_text(', '.join(found.lost))}.</strong>" if found.lost else ""
    text = f'<p class="text">{_text(found.text)}</p><p class="soft">{kept}{lost}</p>'
    yield _card(f"Synthesis, by {_text(found.agent)}", text)


def _dissent(report: CouncilReport) -> Iterator[str]:
    found = () if report.result is None else report.result.dissent
    if found:
        rows = [[one.agent, f"{one.weight:g}", one.preferred or "nothing", one.critique] for one in found]
        yield _card("Dissent", _table(["agent", "weight", "prefers", "critique of the winner"], rows))
    elif report.ok:
        yield _card("Dissent", '<p class="soft">Nobody who weighed the winner prefers another proposal.</p>')


def _contested(report: CouncilReport) -> Iterator[str]:
    found = () if report.result is None else report.result.contested
    rows = [
        [one.agent, one.claim, str(stance), ", ".join(who), reason]
        for one in found
        for stance, reason, who in one.opinions
    ]
    if rows:
        yield _card("Contested claims", _table(["claim of", "claim", "stance", "by", "reason"], rows))


def _matrix(one: CouncilRound) -> str:
    """Return weights by evaluator and proposal, with the support and the controversy below them."""
    standings = one.score.standings
    cells = {(cell.evaluator, cell.target): cell for cell in one.score.contributions}
    evaluators = sorted({cell.evaluator for cell in one.score.contributions})
    head = "".join(f'<th scope="col" class="number">{_text(each.agent)}</th>' for each in standings)
    rows = [
        f'<tr><th scope="row">{_text(who)}</th>'
        + "".join(_cell(cells, who, each.agent) for each in standings)
        + "</tr>"
        for who in evaluators
    ]
    supports = "".join(f'<td class="number">{each.support:.3f}</td>' for each in standings)
    rows.append(f'<tr class="total"><th scope="row">support</th>{supports}</tr>')
    moved = "".join(f'<td class="number">{each.controversy:.2f}</td>' for each in standings)
    rows.append(f'<tr><th scope="row" class="soft">controversy</th>{moved}</tr>')
    scaled = "".join(
        f"<p>The support of {_text(each.agent)} is multiplied by {each.factor:.3f}: it weighed nobody.</p>"
        for each in one.score.scaled
    )
    tie = ""
    if one.score.tied:
        tie = f"<p>Tie of {_text(', '.join(one.score.tied))}; decided by the rule {one.score.tie_break}.</p>"
    table = f'<thead><tr><th scope="col">evaluator</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
    return f'<div class="scroll"><table>{table}</table></div>{scaled}{tie}'


def _cell(cells: Mapping[tuple[str, str], Contribution], who: str, target: str) -> str:
    cell = cells.get((who, target))
    if cell is None:
        return f'<td class="own">{"own" if who == target else "–"}</td>'
    kind = "for" if cell.weight > 0 else "against" if cell.weight < 0 else ""
    return f'<td class="number {kind}">{cell.weight:+g}</td>'


def _uncounted(phase: UncountedPhase) -> str:
    record = phase.record
    votes = [
        [each.agent, vote.target, _weight(vote.weight).strip(), vote.critique]
        for each in record.evaluations
        for vote in each.votes
    ]
    parts = [_proposals(record.proposals, ())]
    parts += [_table(["evaluator", "proposal of", "weight", "critique"], votes)] if votes else []
    missing = [_missing_cells(one) for one in record.abstentions]
    parts += [_table(["phase", "agent", "cause", "reason"], missing)] if missing else []
    return "".join(parts)


def _proposals(proposals: Sequence[Proposal], evaluations: Sequence[Evaluation]) -> str:
    parts = []
    for each in proposals:
        said = [(who.agent, vote) for who in evaluations for vote in who.votes if vote.target == each.agent]
        critiques = "".join(
            f"<li><strong>{_text(who)}</strong>{_weight(vote.weight)}: {_text(vote.critique)}</li>"
            for who, vote in said
            if vote.critique
        )
        listed = f"<h3>Critiques</h3><ul>{critiques}</ul>" if critiques else ""
        text = f'<p class="text">{_text(each.text)}</p>{listed}'
        parts.append(f"<details><summary>Proposal of {_text(each.agent)}</summary>{text}</details>")
    return "".join(parts)


def _weight(weight: float | None) -> str:
    return " abstains" if weight is None else f" {weight:+g}"


def _missing(report: CouncilReport) -> Iterator[str]:
    rows = [[str(one.number), *_missing_cells(each)] for one in report.rounds for each in one.abstentions]
    rows += [
        [str(one.number), "evaluate", each.evaluator, "rejected", f"{each.target}: {each.reason}"]
        for one in report.rounds
        for each in one.score.rejections
    ]
    if rows:
        yield _card("Who had no part", _table(["round", "phase", "agent", "cause", "reason"], rows))


def _missing_cells(one: CouncilAbstention) -> list[str]:
    return [str(one.phase), one.agent, str(one.cause), one.reason]


def _bias(report: CouncilReport) -> Iterator[str]:
    if report.biases:
        rows = [
            [
                one.evaluator or "all",
                str(one.evaluations),
                f"{one.effect:+.3f}",
                f"{one.interval.low:+.3f} to {one.interval.high:+.3f}",
                "yes" if one.is_shown else "no",
            ]
            for one in report.biases
        ]
        about = '<p class="soft">How much larger the share of the proposal was that was shown first.</p>'
        yield _card("Position bias", about + _table(["evaluator", "evaluations", "effect", "95 %", "shown"], rows))


def _baseline(report: CouncilReport) -> Iterator[str]:
    outcome = report.outcome
    found = None if outcome is None else outcome.baseline
    if outcome is None or found is None:
        return
    parts = [
        f"<p>{_text(found.agent)} was asked alone, {count(found.asked, 'time')}. The council cost "
        f"{show_usd(outcome.spent)}, the agent alone {show_usd(found.spent)}.</p>"
    ]
    if found.score is None:
        parts.append(f"<p>There is none: {_text(found.flaw)}</p>")
    else:
        ranked = found.score.standings
        rows = [[one.agent, f"{one.support:.3f}", str(one.in_favour), str(one.against)] for one in ranked]
        parts.append(_table(["answer", "support", "in favour", "against"], rows))
        parts += [f"<p>{_text(found.undecided)}</p>"] if found.undecided else []
    if found.missing:
        missing = [_missing_cells(one) for one in found.missing]
        parts.append(_table(["phase", "agent", "cause", "reason"], missing))
    yield _card("Baseline", "".join(parts))


def _costs(report: CouncilReport) -> str:
    rows = [[one.agent, str(one.calls), f"{one.tokens:,}", show_usd(one.cost)] for one in report.costs]
    return _card("Cost", _table(["agent", "calls", "tokens written", "cost"], rows))


def _card(title: str, inside: str) -> str:
    return f'<section><h2>{title}</h2><div class="card">{inside}</div></section>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    names = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _text(text: str) -> str:
    return escape(redact(shorten(text, MAX_PROPOSAL)).text)
