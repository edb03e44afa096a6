"""How alike an answer and a golden text are: twice the lines that both have in the same order, over all lines.

The lines in common are the longest common subsequence, counted exactly, many lines at a time in the bits of one
number, so that the work is bounded. Of texts too large even for that only equal beginnings and ends are counted, which
is never too high.
"""

from muster.domain.case import Golden

_MOST = 400_000_000  # pairs of lines that are compared: at most half a second, and 30 MB


def similarity(text: str, golden: Golden) -> float:
    """Give the likeness of a text to a golden one, from 0 to 1."""
    if text == golden.text:
        return 1.0
    return line_ratio(_lines(text, golden.normalize_whitespace), _lines(golden.text, golden.normalize_whitespace))


def line_ratio(left: list[str], right: list[str]) -> float:
    """Give twice the common lines over all lines; two texts without a line are the same."""
    if not left and not right:
        return 1.0
    return 2 * _common(left, right) / (len(left) + len(right))


def _lines(text: str, normalize: bool) -> list[str]:
    """Split a text; normalised, runs of spaces are one, and blank lines and spaces at the ends are none."""
    lines = text.splitlines()
    return [shown for line in lines if (shown := " ".join(line.split()))] if normalize else lines


def _common(left: list[str], right: list[str]) -> int:
    begin = _equal_beginning(left, right)
    left, right = left[begin:], right[begin:]
    end = _equal_beginning(left[::-1], right[::-1])
    left, right = left[: len(left) - end], right[: len(right) - end]
    shared = set(left) & set(right)
    shorter, longer = sorted(([line for line in lines if line in shared] for lines in (left, right)), key=len)
    middle = 0 if len(shorter) * len(longer) > _MOST else _longest_common_subsequence(shorter, longer)
    return begin + middle + end


def _equal_beginning(left: list[str], right: list[str]) -> int:
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return place
    return min(len(left), len(right))


def _longest_common_subsequence(left: list[str], right: list[str]) -> int:
    """Count the lines of the longest common subsequence: one bit for each line of `left`, cleared as it grows."""
    where: dict[str, int] = {}
    for place, line in enumerate(left):
        where[line] = where.get(line, 0) | 1 << place
    every = (1 << len(left)) - 1
    row = every
    for line in right:
        if matches := where.get(line):
            hit = row & matches
            row = ((row + hit) | (row - hit)) & every
    return len(left) - row.bit_count()
