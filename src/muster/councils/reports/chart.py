"""The chart of a council: the support of each proposal by round, as SVG."""

from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from muster.councils.rules.outcome import CouncilRound

WIDTH, MIN_HEIGHT = 900, 280
LEFT, RIGHT, TOP, BOTTOM = 90, 180, 16, 34
COLOURS = 6  # classes c0 to c5 of the page
_LINE = 16  # pixels between two names
_MAX_LABEL = 20  # characters of names beside one end


def support_chart(rounds: Sequence[CouncilRound], convictions: Sequence[float]) -> str:
    """Return lines of support by round, with the conviction of each round below."""
    names = sorted({standing.agent for one in rounds for standing in one.score.standings})
    values = [standing.support for one in rounds for standing in one.score.standings]
    low, high = min([0.0, *values]), max([0.0, *values])
    span = (high - low) or 1.0
    height = max(MIN_HEIGHT, TOP + BOTTOM + _LINE * len(names))

    def x(number: int) -> float:
        step = (WIDTH - LEFT - RIGHT) / max(len(rounds) - 1, 1)
        return LEFT + step * (number - 1) if len(rounds) > 1 else (LEFT + WIDTH - RIGHT) / 2

    def y(value: float) -> float:
        return TOP + (high - value) / span * (height - TOP - BOTTOM)

    parts = [f'<line class="zero" x1="{LEFT}" y1="{y(0):.1f}" x2="{WIDTH - RIGHT}" y2="{y(0):.1f}"/>']
    parts += [
        f'<text class="soft" x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>'
        for value in dict.fromkeys((high, 0.0, low))
    ]
    for one, conviction in zip(rounds, convictions, strict=True):
        words = f"round {one.number}, conviction {conviction:.2f}"
        parts.append(
            f'<text class="soft" x="{x(one.number):.1f}" y="{height - 10}" text-anchor="middle">{words}</text>'
        )
    parts += _lines(rounds, names, x, y, height - BOTTOM)
    title = "Support of each proposal by round"
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">{"".join(parts)}</svg>'


def _lines(
    rounds: Sequence[CouncilRound],
    names: Sequence[str],
    x: Callable[[int], float],
    y: Callable[[float], float],
    bottom: int,
) -> list[str]:
    parts, ends = [], []
    for place, name in enumerate(names):
        kind = f"c{place % COLOURS}"
        points = [
            (x(one.number), y(standing.support))
            for one in rounds
            for standing in one.score.standings
            if standing.agent == name
        ]
        drawn = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        parts.append(f'<polyline class="{kind}" points="{drawn}"/>')
        parts += [f'<circle class="{kind}" cx="{left:.1f}" cy="{top:.1f}" r="4"/>' for left, top in points]
        ends.append(LineEnd(top=points[-1][1], left=points[-1][0], name=name, kind=kind))
    groups = _together(ends)
    for top, group in zip(name_places([one[0].top for one in groups], bottom), groups, strict=True):
        first, words = group[0], names_together([one.name for one in group])
        parts.append(f'<text class="{first.kind}" x="{first.left + 12:.1f}" y="{top + 4:.1f}">{escape(words)}</text>')
    return parts


def names_together(names: Sequence[str]) -> str:
    """Return as many names as there is room for beside the chart, and how many more there are."""
    words, shown = names[0][:_MAX_LABEL], 1
    while shown < len(names) and len(f"{words}, {names[shown]}") <= _MAX_LABEL:
        words, shown = f"{words}, {names[shown]}", shown + 1
    return words if shown == len(names) else f"{words[: _MAX_LABEL - 4]} and {len(names) - shown} more"


class LineEnd(NamedTuple):
    """Where the line of a proposal ends, and how it is drawn."""

    top: float
    left: float
    name: str
    kind: str


def _together(ends: Sequence[LineEnd]) -> list[list[LineEnd]]:
    """Return lines that end in the same place together, from top to bottom."""
    found: dict[tuple[str, str], list[LineEnd]] = {}
    for one in sorted(ends):
        found.setdefault((f"{one.top:.1f}", f"{one.left:.1f}"), []).append(one)
    return list(found.values())


def name_places(ends: Sequence[float], bottom: int) -> list[float]:
    """Return where names stand beside the ends of their lines, from top to bottom: apart, and above the bottom."""
    places: list[float] = []
    for end in ends:
        places.append(max(end, places[-1] + _LINE) if places else end)
    for index in reversed(range(len(places))):
        lowest = bottom if index == len(places) - 1 else places[index + 1] - _LINE
        places[index] = min(places[index], lowest)
    return places
