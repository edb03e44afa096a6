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

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SUITE = ROOT / "examples" / "suites" / "order-desk"
COLUMNS = 104
COMMAND = ("run", ".", "--agent", "clerk", "--agent", "hasty")
REPORT_SIZE = {"width": 1180, "height": 820}


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
def served(folder: Path) -> Iterator[str]:
    """Serve the store of a folder, and give the address."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "muster", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield json.loads(process.stdout.readline())["url"] if process.stdout else ""
        finally:
            process.terminate()


def draw_page(address: str, file: Path) -> None:
    """Take a screenshot of a page when everything that it asks for is there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        view = browser.new_page(viewport=REPORT_SIZE)  # type: ignore[arg-type]
        view.goto(address)
        view.locator("table").first.wait_for()
        view.screenshot(path=str(file))
        browser.close()


def main() -> None:
    """Run the example suite and draw its terminal, its report, and how the page shows it."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "order-desk"
        shutil.copytree(SUITE, folder)
        page = folder / "report.html"
        text = terminal_text(folder, *COMMAND, "--report", f"html={page}")
        draw_terminal(text, f"muster {' '.join(COMMAND)} --report html=report.html", IMAGES / "run.svg")
        draw_page(page.as_uri(), IMAGES / "report.png")
        with served(folder) as url:
            draw_page(f"{url}/#/runs/last", IMAGES / "page.png")


if __name__ == "__main__":
    main()
