"""Battles and scale tests as one HTML file that fetches nothing and runs no script."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from muster import __version__
from muster.battles.reports.markdown import revision_words
from muster.battles.scale_summary import ScaleReport
from muster.battles.summary import BattleReport
from muster.battles.values import BattleDecision
from muster.domain.call import Role
from muster.domain.money import show_usd
from muster.domain.run import TERMINAL, Run
from muster.reporting.look import TOKENS
from muster.text.secrets.redaction import redact
from muster.text.words import percent, shorten

MAX_MESSAGE = 50_000  # characters of a message


def battle_html(report: BattleReport) -> str:
    """Return the page of a battle."""
    usage = report.usage
    facts = {
        "Run": report.run.id,
        "Agent under test": report.spec.agent,
        "Counterpart": report.spec.counterpart,
        "Shown with the first message": ", ".join(each.label for each in report.spec.media),
        "Replies": f"{report.turns} of at most {report.spec.message_limit}",
        "Tokens": f"{usage.tokens_in:,} in, {usage.tokens_out:,} out",
        "Cost": show_usd(report.cost),
    }
    word = str(report.ending or report.run.state)
    head = _header(report.run, report.ok, word, report.spec.goal or "A conversation without a goal", facts)
    verdict = f"<p>{_text(report.verdict)}</p>"
    return _page(f"Battle {report.run.id}", [head, _card("What it came to", verdict), *_conversation(report)])


def scale_html(report: ScaleReport) -> str:
    """Return the page of a scale test."""
    return _page(f"Scale test {report.run.id}", _scale(report))


def _scale(report: ScaleReport) -> Iterator[str]:
    turns, usage = report.turns, report.usage
    times = ", ".join(f"p{q} {value:,.0f} ms" for q, value in report.latency.items() if value is not None)
    facts = {
        "Run": report.run.id,
        "Battles": f"{len(report.ended)} of {len(report.battles)} are over",
        "Goal rate": percent(report.goal_rate),
        "Judged by nobody": f"{report.unjudged}: {report.unjudged_reason}" if report.unjudged else "",
        "Replies": "" if turns is None else f"mean {turns.mean:.1f}, from {turns.least} to {turns.most}",
        "Time of a reply": times,
        "Tokens": f"{usage.tokens_in:,} in, {usage.tokens_out:,} out",
        "Cost": show_usd(report.cost),
    }
    yield _header(report.run, report.ok, "passed" if report.ok else "not passed", report.verdict, facts)
    rows = [
        [name, str(number), f"{percent(report.intervals[name].low)} to {percent(report.intervals[name].high)}"]
        for name, number in report.counts.items()
    ]
    yield _card("Endings", _table(["ending", "battles", "95% interval"], rows))
    if len(report.rates) > 1:
        rates = [[one.agent, one.prompt, f"{one.reached} of {one.battles}"] for one in report.rates]
        yield _card("Agents and prompts", _table(["agent", "prompt", "goals reached"], rates))
    revision = report.revision
    if revision is not None and revision.prompt:
        reasons = "".join(f"<li>{_text(one)}</li>" for one in revision.reasons)
        words = f'<p class="text">{_text(revision.prompt)}</p><ul>{reasons}</ul><p>{_text(revision_words(report))}</p>'
        yield _card(f"Revised prompt, proposed by {_text(revision.agent)}", words)
    elif revision is not None:
        yield _card("Revised prompt", f"<p>None was proposed: {_text(revision.flaw)}</p>")
    for sample in report.samples:
        inside = "".join(_messages(sample))
        title = f"<summary>{_text(sample.run.id)}: {_text(sample.verdict)}</summary>"
        yield f"<details>{title}{inside}</details>"


def _conversation(report: BattleReport) -> Iterator[str]:
    yield "<section><h2>Conversation</h2>"
    yield from _messages(report)
    yield "</section>"


def _messages(report: BattleReport) -> Iterator[str]:
    turn = 0
    for message in report.messages:
        is_agent = message.role is Role.ASSISTANT
        who = f"{message.seq} · {'agent' if is_agent else 'counterpart'} {message.agent}"
        about = f'<div class="soft">{_text(who)}</div>'
        text = f'<p class="text">{_text(message.content)}</p>'
        yield f'<div class="message {"agent" if is_agent else ""}">{about}{text}</div>'
        if is_agent:
            turn += 1
            yield from (_decision(one) for one in report.decisions if one.turn == turn)


def _decision(one: BattleDecision) -> str:
    sure = "" if one.confidence is None else f" ({one.confidence:.2f})"
    why = "; ".join(part for part in (", ".join(one.criteria), one.reason) if part)
    said = f"{one.source}: <b>{one.verdict}</b>{sure} {_text(shorten(why, 1000))}"
    return f'<div class="decision {one.verdict}">{said}</div>'


def _page(title: str, sections: Iterator[str] | Sequence[str]) -> str:
    style = TOKENS + (files("muster.battles.reports") / "page.css").read_text(encoding="utf-8")
    named = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{named}'; base-uri 'none'; form-action 'none'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{_text(title)}</title><style>{style}</style>"
    )
    body = "\n".join(sections)
    foot = f"<footer>Made by muster {__version__} from the stored run.</footer>"
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n{foot}\n</body>\n</html>\n'


def _header(run: Run, ok: bool, word: str, title: str, facts: Mapping[str, str]) -> str:
    kind = "ok" if ok else ""
    if run.state not in TERMINAL:
        kind, word = "pending", str(run.state)
    listed = "".join(
        f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.items() if value
    )
    return (
        f'<header class="card verdict {kind}"><div class="word">{_text(word)}</div>'
        f'<h1 class="text">{_text(shorten(title, 2000))}</h1><dl class="facts">{listed}</dl></header>'
    )


def _card(title: str, inside: str) -> str:
    return f'<section><h2>{title}</h2><div class="card">{inside}</div></section>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    names = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _text(text: str) -> str:
    return escape(redact(shorten(text, MAX_MESSAGE)).text)
