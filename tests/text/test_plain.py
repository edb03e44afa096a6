"""Titles are words: the signs of Markdown and HTML are left out, and what only looks like them stays."""

import pytest

from muster.text.plain import MAX_READ, plain_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# Fix the **login** page", "Fix the login page"),
        ("__all__ of it, **now.**", "all of it, now."),
        ("> - [ ] see [the issue](https://example.com/1) and `main.py`", "see the issue and main.py"),
        ("* first\n* second", "first\nsecond"),
        ("<p>Hello <b class='x'>you</b><br>there</p>", "Hello you there"),
        ("<script>alert(1)</script>", "alert(1)"),
        ("<!-- a note -->Write", "Write"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("_really_ *now*, ~~never~~", "really now, never"),
        ("How do I close a <div>?", "How do I close a <div>?"),
        ("is a < b and c > d?", "is a < b and c > d?"),
        ("2 * 3 * 4 in snake_case_name and __init__.py", "2 * 3 * 4 in snake_case_name and __init__.py"),
        ("---\nTitle\n=====", "Title"),
    ],
)
def test_a_title_has_no_markup(text: str, words: str) -> None:
    assert plain_words(text) == words


@pytest.mark.parametrize("piece", ["[", "**a", "<a ", "_a", ">", "- ", "`", "<!--", "<!---->", "<b></b>", "**a** "])
@pytest.mark.timeout(60)
def test_a_text_made_to_be_slow_is_not(piece: str) -> None:
    """Take minutes for some of them where the work grows with the square of the text."""
    for _ in range(5):
        assert len(plain_words(piece * 20_000)) <= MAX_READ
