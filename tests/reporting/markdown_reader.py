"""Markdown as a browser shows it: which tags there are, and what stands outside of code."""

from html.parser import HTMLParser

from markdown_it import MarkdownIt


class Reader(HTMLParser):
    """What a browser would make of rendered Markdown."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loose = ""  # text outside code, where names are called and links are made
        self.cells = 0
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.cells += tag == "td"
        self._code += tag in ("code", "pre")
        assert all(name in ("class", "style") for name, _ in attrs), attrs

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("code", "pre")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.loose += data


def read(text: str) -> Reader:
    """Render a text and read it."""
    reader = Reader()
    reader.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    reader.close()
    return reader
