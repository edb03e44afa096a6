"""A real browser without a window: Debian's Chromium, in its form that starts no other part of a desktop browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from shutil import which

from playwright.sync_api import Browser, sync_playwright

# The first takes half of the processor time of the second.
PROGRAMS = ("chromium-headless-shell", "chromium")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; it ends with the block."""
    program = next(filter(None, map(which, PROGRAMS)), None)
    assert program is not None, "chromium is not installed: make test installs it"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield started
        started.close()
