"""What the parser of YAML says, in words for people."""

import yaml

_UNCLOSED = {"did not find expected ',' or ']'": "[", "did not find expected ',' or '}'": "{"}
_MISTAKES = {
    "mapping values are not allowed in this context": (
        "unexpected ':'; quote a value that holds ': ', or look at the indentation"
    ),
    "did not find expected node content": "a value is missing here, or a [ or { before it is not closed",
    "did not find expected '-' indicator": "expected '-' as for the items before; look at the indentation",
    "did not find expected key": "expected a key here; look at the indentation, or quote the value before it",
    "found character that cannot start any token": "a value cannot begin with this character; quote it",
    "found unknown escape character": "unknown escape in double quotes; use single quotes, or write \\\\",
    "block sequence entries are not allowed in this context": "a list cannot begin here; put its '-' on the next line",
    "did not find expected <document start>": "unexpected text after the end of a value",
}


def plain_words(error: yaml.YAMLError) -> str:
    """Return what the parser says, in words for people where it is one of the usual mistakes."""
    context, problem = getattr(error, "context", None), getattr(error, "problem", None)
    begun = getattr(error, "context_mark", None)
    where = f"in line {begun.line + 1}" if begun is not None else "before"
    if context == "while scanning a quoted scalar" and problem == "found unexpected end of stream":
        return f"the quote opened {where} is not closed"
    if problem in _UNCLOSED:
        return f"the {_UNCLOSED[problem]} opened {where} is not closed, or a comma is missing before this"
    return _MISTAKES.get(problem or "") or ", ".join(part for part in (context, problem) if part)
