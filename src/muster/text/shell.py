"""Shell syntax in a command that no shell runs: what `shlex.split` would pass on as plain words."""

import re
from collections.abc import Iterator

# What stands in quotes, or after a backslash, is plain to a shell; a line that goes on after a backslash is not.
_PIECES = re.compile(
    r"""(?P<single>'[^']*')
      | (?P<double>"(?:[^"\\]|\\.)*")
      | (?P<escaped>\\[^\n])
      | (?P<blank>[ \t]+)
      | (?P<operator>\|\||&&|>>|<<|[|&;<>()])
      | (?P<plain>.)""",
    re.VERBOSE | re.DOTALL,
)
_ANYWHERE = frozenset("$`*?\n\r\\")
_AT_BEGIN = frozenset("#~")  # of a word: a comment, a home folder
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


def shell_syntax(command: str) -> str | None:
    """Return the first piece of a command that a shell would not take as it is written; None when there is none."""
    if _ASSIGNMENT.match(command):
        return command.split()[0]
    return next((syntax for word in _words(command) if (syntax := _syntax_of(word)) is not None), None)


def _words(command: str) -> Iterator[list[re.Match[str]]]:
    """Yield the words of a command, each in pieces."""
    word: list[re.Match[str]] = []
    for piece in _PIECES.finditer(command):
        if piece.lastgroup != "blank":
            word.append(piece)
        elif word:
            yield word
            word = []
    yield word


def _syntax_of(word: list[re.Match[str]]) -> str | None:
    """Return the first piece of a word that is special to a shell."""
    text = "".join(piece[0] for piece in word)
    for place, piece in enumerate(word):
        sign = piece[0]
        match piece.lastgroup:
            case "operator":
                return sign
            case "double" if found := re.search(r"[$`]|\\\n", sign):
                return found[0]
            case "plain" if sign in _ANYWHERE or (place == 0 and sign in _AT_BEGIN):
                return sign
            case "plain" if (sign == "{" and text != "{}") or (sign == "[" and text != "["):
                return sign
    return None
