"""A large run opened on the page, in a real browser: how long until its first rows are there, and while it is scrolled.

The server is a process of its own, the browser Debian's Chromium; both are started before anything is measured.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from playwright.sync_api import Browser, sync_playwright

import muster
from muster.settings import load_settings

ROUNDS = 5
SCROLLS = 20


@muster.workload("bench-page")
async def many(ctx: muster.Context, spec: dict[str, int]) -> None:
    """Make many calls."""

    async def one(number: int, text: str) -> str:
        return (await ctx.call("sim/echo", text, key=f"call/{number:06}")).text

    async for _ in ctx.map(one, (str(number) for number in range(spec["calls"]))):
        pass


async def fill(folder: Path, calls: int) -> str:
    """Store a run with so many calls, and return its id."""
    settings = load_settings(folder / ".muster", folder=folder, environment={})
    async with muster.open(settings=settings) as m:
        handle = await m.runs.start("bench-page", {"calls": calls})
        return str((await handle.wait()).id)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the store of a folder."""
    command = [sys.executable, "-m", "muster", "serve", "--port", "0", "--json"]
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder)}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


def opened(browser: Browser, url: str, run: str) -> tuple[float, float]:
    """Return the seconds until the first rows are there, and those of one step of scrolling to what is not loaded."""
    with browser.new_context() as context:
        page = context.new_page()
        begun = time.perf_counter()
        page.goto(f"{url}/#/runs/{run}/calls")
        page.get_by_role("button", name="call/000000").wait_for()
        first = time.perf_counter() - begun
        foot = page.locator(".foot")
        begun = time.perf_counter()
        for number in range(SCROLLS):
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            foot.filter(has_text=f"{200 * (number + 2):,} of").wait_for()
        return first, (time.perf_counter() - begun) / SCROLLS


def main() -> None:
    """Measure, and print the figures as JSON."""
    program = which("chromium")
    assert program is not None, "chromium is not installed"
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        with ThreadPoolExecutor(1) as thread:  # the browser has the loop of this one
            run = thread.submit(lambda: asyncio.run(fill(folder, int(sys.argv[1])))).result()
        with served(folder) as url:
            browser = playwright.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox"])
            rounds = [opened(browser, url, run) for _ in range(ROUNDS)]
            browser.close()
    first, step = (statistics.median(one) for one in zip(*rounds, strict=True))
    print(json.dumps({"first_seconds": first, "scroll_seconds": step}))


if __name__ == "__main__":
    main()
