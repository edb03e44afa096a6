"""What came of scoring an archive again, for a person or a program."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.app.evidence import Difference, FigureDifference, Rescoring
from muster.app.suite_values import WORDS, Status
from muster.app.views.suites import rescoring_view
from muster.cli.clean import clean
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with
from muster.reports.words import count, one_line

MOST_SHOWN = 50
MOST_KEYS = 5
MOST_CHARACTERS = 120  # of a line that others wrote


REDACTED = "cannot be scored again, because secrets were removed"


def tell_rescoring(manner: Manner, file: Path, found: Rescoring) -> int:
    """Say what is the same and what is not; gives the exit code."""
    data = rescoring_view(file, found)
    if manner.json and not found.ok:
        told = {"code": "scored_otherwise", "message": _words(found), "suggestions": _suggestions(found)}
        return fail_with(manner, told, 1, data)
    answer(manner, data, lambda console: _tell(console, found))
    return 0 if found.ok else 1


def _tell(console: Console, found: Rescoring) -> None:
    console.print(Text(_words(found), style="bold green" if found.ok else "bold red"), soft_wrap=True)
    for title, redacted in (("different", False), (REDACTED, True)):
        chosen = [one for one in found.differences if one.redacted is redacted]
        if chosen:
            console.print(_table(title, chosen))
    for figure in found.figures[:MOST_SHOWN]:
        console.print(Text(clean(_figure(figure))), soft_wrap=True)
    for suggestion in _suggestions(found):
        console.print(Text(suggestion), soft_wrap=True)
    if found.unmentioned:
        console.print(Text(_unmentioned(found)), soft_wrap=True)


def _words(found: Rescoring) -> str:
    parts = [f"{count(found.same, 'result')} came out the same"]
    if found.different:
        parts.append(f"{found.different:,} did not")
    if found.blurred:
        parts.append(f"{found.blurred:,} {REDACTED}")
    if found.figures:
        parts.append(f"{count(len(found.figures), 'figure')} did not follow from the results")
    if found.missing:
        parts.append(f"{found.missing:,} without a verdict")
    return ", ".join(parts)


def _suggestions(found: Rescoring) -> list[str]:
    only_blurred = found.blurred and not found.different and not found.figures
    return ["to let those differ: --allow-redacted"] if only_blurred and not found.allow_redacted else []


def _figure(figure: FigureDifference) -> str:
    was, now = (one_line(str(value), MOST_CHARACTERS) for value in (figure.was, figure.now))
    return f"{one_line(figure.where, MOST_CHARACTERS)} is {was}, and the results come to {now}"


def _unmentioned(found: Rescoring) -> str:
    keys = ", ".join(one_line(clean(key), MOST_CHARACTERS) for key in found.unmentioned_keys[:MOST_KEYS])
    more = ", …" if found.unmentioned > MOST_KEYS else ""
    return f"calls that no verdict mentions: {found.unmentioned:,} ({keys}{more})"


def _table(title: str, differences: Sequence[Difference]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for name in ("case", "subject", "epoch", "recorded", "now", "why"):
        table.add_column(name, overflow="fold")
    for one in differences[:MOST_SHOWN]:
        was, now = _ending(one.was, one.was_score), _ending(one.now, one.now_score)
        why = Text(clean(one_line(one.why, 2 * MOST_CHARACTERS)))
        table.add_row(Text(clean(one.case)), Text(clean(one.subject)), str(one.epoch), was, now, why)
    return table


def _ending(status: Status | None, score: float | None) -> str:
    return "–" if status is None else f"{WORDS[status]} {_score(score)}"


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"
