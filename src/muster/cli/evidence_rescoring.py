"""What came of scoring an archive again, for a person or a program."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.cli.clean import clean
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with
from muster.reports.evidence.rescoring import Difference, Rescoring
from muster.reports.suite.words import WORDS, count, one_line

MOST_SHOWN = 50


def tell_rescoring(manner: Manner, file: Path, found: Rescoring) -> int:
    """Say what is the same and what is not; gives the exit code."""
    data = _json(file, found)
    if manner.json and not found.ok:
        told = {"code": "scored_otherwise", "message": _words(found), "suggestions": []}
        return fail_with(manner, told, 1, data)
    answer(manner, data, lambda console: _tell(console, found))
    return 0 if found.ok else 1


def _tell(console: Console, found: Rescoring) -> None:
    console.print(Text(_words(found), style="bold green" if found.ok else "bold red"), soft_wrap=True)
    for title, redacted in (("different", False), ("different, and without secrets that it was scored with", True)):
        chosen = [one for one in found.differences if one.redacted is redacted]
        if chosen:
            console.print(_table(title, chosen))


def _words(found: Rescoring) -> str:
    parts = [f"{count(found.same, 'result')} came out the same"]
    if found.different:
        parts.append(f"{found.different:,} did not")
    if found.blurred:
        parts.append(f"{found.blurred:,} cannot be told, since secrets were taken out of their texts")
    return ", ".join(parts)


def _table(title: str, differences: Sequence[Difference]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for name in ("case", "subject", "epoch", "recorded", "now", "why"):
        table.add_column(name, overflow="fold")
    for one in differences[:MOST_SHOWN]:
        now = "–" if one.now is None else f"{WORDS[one.now]} {_score(one.now_score)}"
        was = f"{WORDS[one.was]} {_score(one.was_score)}"
        why = Text(clean(one_line(one.why, 120)))
        table.add_row(Text(clean(one.case)), Text(clean(one.subject)), str(one.epoch), was, now, why)
    return table


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"


def _json(file: Path, found: Rescoring) -> dict[str, Any]:
    return {
        "file": str(file),
        "ok": found.ok,
        "signer_known": found.verification.trusted,
        "same": found.same,
        "different": found.different,
        "redacted": found.blurred,
        "differences": msgspec.to_builtins(found.differences),
    }
