"""Text for a terminal: nothing in it is obeyed, however it is cut into pieces."""

import pytest

from muster.cli.terminal.output import TerminalCleaner, clean

HOSTILE = "a\x1b[31mb\x1b[0m\x1b]8;;http://x\x1b\\link\x1b]8;;\x07\x1b(Bc\x9b2Jd\x07\r\n\te\x1b"
SAFE = "ablinkc2Jd\n\te"


def test_only_text_newlines_and_tabs_are_left() -> None:
    assert clean(HOSTILE) == SAFE
    assert clean("Grüße, 世界 👋🏽\n") == "Grüße, 世界 👋🏽\n"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_pieces_are_cleaned_like_the_whole(size: int) -> None:
    cleaner = TerminalCleaner()
    pieces = [HOSTILE[start : start + size] for start in range(0, len(HOSTILE), size)]
    assert "".join(cleaner.feed(piece) for piece in pieces) + cleaner.finish() == SAFE


def test_a_sequence_that_never_ends_does_not_hold_the_text_for_ever() -> None:
    cleaner = TerminalCleaner()
    shown = cleaner.feed("\x1b]0;" + "x" * 5000)
    assert shown.endswith("x" * 5000)
