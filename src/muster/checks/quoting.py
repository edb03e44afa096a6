"""What was found, short enough for one line of a report. Escaped, so that an answer cannot paint a terminal."""

LONGEST = 200
_BEFORE = 60  # characters that are shown before a place


def quote(text: str, longest: int = LONGEST) -> str:
    """Give the beginning of a text in quotes."""
    shown = repr(text[:longest])
    if len(text) <= longest and len(shown) <= longest:
        return shown
    return f"{shown[: longest - 2]}…{shown[0]}"


def quote_around(text: str, start: int, longest: int = LONGEST) -> str:
    """Give a place in a text in quotes, with a little of what stands before it."""
    begin = max(0, start - _BEFORE)
    shown = quote(text[begin : begin + longest + 1], longest)
    return f"{shown[0]}…{shown[1:]}" if begin else shown
