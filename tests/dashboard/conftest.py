from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.server import Server
from tests.browser import chromium

from .demo import Demo

PATIENCE = 20_000  # milliseconds for which what is expected is waited for

expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.page)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@dataclass
class Seen:
    """An open page, and everything that it complained of or asked for."""

    page: Page
    server: Server
    diagnostics: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def go(self, place: str) -> Page:
        """Open a place of the page as if it were typed."""
        self.page.goto(f"{self.server.url}/#/{place}")
        return self.page


@pytest.fixture
def look(browser: Browser) -> Iterator[Any]:
    contexts = []

    def open_page(server: Server, place: str = "runs", **options: Any) -> Seen:
        # What moves for ever draws frame after frame, which a click has to wait for on a machine that is busy.
        context = browser.new_context(**({"reduced_motion": "reduce"} | options))
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        seen = Seen(context.new_page(), server)
        seen.page.on("console", lambda message: seen.diagnostics.append(message.text))
        seen.page.on("pageerror", lambda error: seen.diagnostics.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.go(place)
        return seen

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder: Path = tmp_path_factory.mktemp("demo")
    return Demo.at(folder)


@pytest.fixture(scope="module")
def server(demo: Demo) -> Iterator[Server]:
    with demo.project.serve() as started:
        yield started
