"""Makes the pictures of the README from real runs: `python -m docs.pictures`."""

import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SUITE = ROOT / "examples" / "suites" / "order-desk"
COLUMNS = 104
COMMAND = ("run", ".", "--agent", "clerk", "--agent", "hasty")
REPORT_SIZE = {"width": 1180, "height": 820}
WIDE = {"width": 1180, "height": 560}


def terminal_text(folder: Path, *arguments: str) -> str:
    """Return what a command writes to a terminal."""
    reader, writer = pty.openpty()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
        "LINES": "40",
    }
    command = [sys.executable, "-m", "muster", *arguments]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=writer, stdout=writer, stderr=quiet):  # noqa: S603
        os.close(writer)
        parts = []
        try:
            while part := os.read(reader, 65_536):
                parts.append(part)
        except OSError:  # the other end is closed
            pass
    os.close(reader)
    return b"".join(parts).decode().replace("\r\n", "\n")


def draw_terminal(text: str, title: str, file: Path) -> None:
    """Draw the text of a terminal as an SVG without references to anything outside of it."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ " + title, style="bold"))
    console.print(Text.from_ansi(text))
    drawing = console.export_svg(title="", theme=MONOKAI, unique_id="muster")
    drawing = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", drawing, flags=re.DOTALL)
    file.write_text(drawing.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas"), encoding="utf-8")


@contextmanager
def demonstrated(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the store of the demonstration, and give the address and the run of its suite."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "muster", "demo", "--serve", "--json"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            suite, server = [json.loads(process.stdout.readline()) for _ in range(2)] if process.stdout else ({}, {})
            yield server["url"], suite["data"]["suite"]["run"]
        finally:
            process.terminate()


def draw_page(address: str, file: Path, **look: Any) -> None:
    """Take a screenshot of a page when everything that it asks for is there."""
    from playwright.sync_api import expect
    from tests.browser import chromium

    with chromium() as browser:
        view = browser.new_page(**({"viewport": REPORT_SIZE} | look))
        view.goto(address)
        view.locator("table, [role=table]").first.wait_for()
        expect(view.locator(".loading")).to_have_count(0)
        view.screenshot(path=str(file))


def main() -> None:
    """Draw the terminal and the report of the example suite, and the page on the store of the demonstration."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "order-desk"
        shutil.copytree(SUITE, folder)
        page = folder / "report.html"
        text = terminal_text(folder, *COMMAND, "--report", f"html={page}")
        draw_terminal(text, f"muster {' '.join(COMMAND)} --report html=report.html", IMAGES / "run.svg")
        draw_page(page.as_uri(), IMAGES / "report.png")
        with demonstrated(Path(name)) as (url, run):
            draw_page(f"{url}/#/runs/{run}", IMAGES / "page.png")
            draw_page(f"{url}/#/runs/{run}/timeline", IMAGES / "page-timeline.png", color_scheme="dark", viewport=WIDE)


if __name__ == "__main__":
    main()
