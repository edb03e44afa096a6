"""Text for Markdown: any text stays inside its code, and no secret is in it."""

from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from muster.reporting.markdown import block, in_cell, in_html, inline
from tests.reporting.markdown_reader import read


@given(st.text(st.characters(), max_size=60), st.text("`~<>|@#*_[]()\\\n ", max_size=40))
def test_any_text_stays_inside_its_code(text: str, nasty: str) -> None:
    for given_text in (text, nasty, text + nasty):
        line = read(f"| {in_cell(given_text)} | end |\n|---|---|\n| {in_cell(given_text)} | end |")
        assert (line.cells, line.loose.split()) == (2, ["end", "end"])
        told = read(f"{inline(given_text)} one\n- {inline(given_text)}\n- two {inline(given_text)} {inline(text)}\n")
        assert (told.tags, told.loose.split()) == (
            ["p", "code", "ul", "li", "code", "li", "code", "code"],
            ["one", "two"],
        )
        folded = read(f"<details><summary>{in_html(given_text)} end</summary>\n\nbody\n\n</details>")
        assert (folded.tags, folded.loose.split()) == (["details", "summary", "code", "p"], ["end", "body"])
        whole = read(f"before\n\n{block(given_text)}\n\nafter")
        assert (whole.tags, whole.loose.split()) == (["p", "pre", "code", "p"], ["before", "after"])


def test_a_secret_cannot_hide_behind_the_spelling_of_its_punctuation_or_a_cut() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    for text in (inline(f"the token {secret} is here"), inline("x" * 110 + " " + secret), block("y " + secret, 12)):
        assert "a1B2" not in unescape(text)
