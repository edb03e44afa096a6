"""Whether a text is a name that people give to things in code, and not characters drawn at random.

`password = hashedPassword` and `password = abkdJhwK…` differ in nothing else. A name is made of words that begin
with capitals or stand between underscores, with numbers at their ends, and most pairs of its letters are common ones.
"""

import re
from itertools import pairwise

_PIECE = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LETTERS = re.compile("[a-z]{2,}")
_LONG_WITHOUT_VOWEL = 5
# By its first letter, what may follow: of the pairs in the 173,000 names of ten large packages 95 % are among these, of
# letters drawn at random 37 %.
_FOLLOWS = {
    "a": "bcdgilmnprstuvxy",
    "b": "aeijloru",
    "c": "acehiklorstu",
    "d": "adefilorstu",
    "e": "abcdefgilmnpqrstvwxy",
    "f": "aefilortu",
    "g": "aehilnrsu",
    "h": "aeiot",
    "i": "abcdefglmnoprstvxz",
    "j": "e",
    "k": "ei",
    "l": "adeilostuy",
    "m": "abeimopsu",
    "n": "acdefgiknopstuv",
    "o": "abcdfgiklmnoprstuvw",
    "p": "adehiloprstuy",
    "q": "u",
    "r": "acdegiklmnorstuvy",
    "s": "acehiklopstuy",
    "t": "acehiloprstuy",
    "u": "abcdeilmnprst",
    "v": "aei",
    "w": "aeiors",
    "x": "ept",
    "y": "nps",
    "z": "e",
}
_MAX_ODD_CHARACTERS = 1
_COMMON_SHARE = 0.5
_COMMON_SHARE_IF_ODD = 0.75


def is_name(text: str) -> bool:
    """Return whether a text of letters, digits, underscores, hyphens and dots is a name."""
    words = [word for word in re.split("[_.-]", text) if word]
    counts = [_odd(word) for word in words]
    odd = sum(map(bool, counts)) if len(words) > 1 else sum(counts)
    return odd <= _MAX_ODD_CHARACTERS and _share(text) >= (_COMMON_SHARE_IF_ODD if odd else _COMMON_SHARE)


def _odd(word: str) -> int:
    """Return how many parts of a word are unlike those of names: a single letter, a number within it, no vowels."""
    parts = _PIECE.findall(word) if len(word) > 1 else []  # the x of an x_axis is none
    last = len(parts) - 1
    return sum(_is_odd(part, index == 0, index == last, word) for index, part in enumerate(parts))


def _is_odd(part: str, is_first: bool, is_last: bool, word: str) -> bool:
    if part.isdigit():
        return not is_last
    if len(part) == 1 or (len(part) >= _LONG_WITHOUT_VOWEL and not re.search("[aeiouyAEIOUY]", part)):
        return True
    return part.isupper() and not word.isupper() and not is_first and not is_last


def _share(text: str) -> float:
    """Return the share of the pairs of letters that are common."""
    pairs = [pair for part in _LETTERS.findall(text.lower()) for pair in pairwise(part)]
    return sum(second in _FOLLOWS.get(first, "") for first, second in pairs) / len(pairs) if pairs else 0.0
