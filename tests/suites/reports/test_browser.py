"""The page: one file that fetches nothing, in a real browser; a failing case is found and its conversation opened."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from muster.domain.money import Microdollars, show_usd
from muster.domain.run import RunState
from tests.browser import chromium
from tests.suites.reports.house import HOSTILE, Story, case, hostile, result, shop, written


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def shop_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    return page_file(folder, shop())


def page_file(folder: Path, story: Story) -> Path:
    """Write a page; in a thread of its own, as the browser is driven by a loop in this one."""
    path = folder / "report.html"
    with ThreadPoolExecutor(1) as thread:
        text = thread.submit(lambda: asyncio.run(written(folder, story, "html"))).result()
    path.write_text(text, encoding="utf-8")
    return path


@dataclass
class Seen:
    """An open page, and everything that it complained of or asked for."""

    page: Page
    diagnostics: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def rows(self) -> list[str]:
        return self.page.locator("#rows tr .open").all_inner_texts()


@pytest.fixture
def look(browser: Browser) -> Iterator[Any]:
    contexts = []

    def open_page(path: Path, **options: Any) -> Seen:
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(5000)
        seen = Seen(context.new_page())
        seen.page.on("console", lambda message: seen.diagnostics.append(message.text))
        seen.page.on("pageerror", lambda error: seen.diagnostics.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.goto(path.as_uri())
        return seen

    yield open_page
    for context in contexts:
        context.close()


def test_a_failing_case_is_found_by_filter_and_its_conversation_is_read(look: Any, shop_page: Path) -> None:
    seen = look(shop_page)
    page = seen.page
    assert len(seen.rows()) == 16
    expect(page.locator("#verdict")).to_contain_text("6 of 14 cases over 2 subjects did not pass")
    page.get_by_role("button", name="failed 3").click()
    assert seen.rows() == ["refund-too-late", "refund-too-late", "count-open-tickets"]
    page.get_by_label("Search cases").fill("close_ticket")
    assert seen.rows() == ["count-open-tickets"]
    expect(page.locator("#count")).to_contain_text("1 of 16 rows")
    page.get_by_role("button", name="count-open-tickets").click()
    panel = page.get_by_role("dialog")
    expect(panel).to_be_visible()
    assert panel.locator(".message .role").all_inner_texts() == ["SYSTEM", "USER", "ASSISTANT", "TOOL", "ASSISTANT"]
    expect(panel.locator(".call code")).to_have_text("count_tickets")
    expect(panel.locator(".call pre")).to_contain_text('"queue": "refunds"')
    expect(panel.locator(".box.bad").last).to_contain_text("close_ticket was not called after count_tickets")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert seen.diagnostics == []
    assert seen.requests == [shop_page.as_uri()]


def test_what_the_judge_quoted_is_marked_in_the_answer(look: Any, shop_page: Path) -> None:
    page = look(shop_page).page
    page.get_by_role("button", name="refund-too-late").first.click()
    panel = page.get_by_role("dialog")
    assert panel.locator("mark").all_inner_texts() == ["started a refund of $48.20 to your card"]
    expect(panel).to_contain_text("This quotation does not stand in the answer.")
    expect(panel).to_contain_text("The thirty-day window is mentioned, but the policy is not named by its number.")
    panel.get_by_role("button", name="epoch 2: failed").click()
    expect(panel.get_by_role("button", name="epoch 2: failed")).to_have_attribute("aria-pressed", "true")


def test_everything_can_be_done_with_the_keyboard(look: Any, shop_page: Path) -> None:
    page = look(shop_page).page
    page.locator("#rows .open").first.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog")
    expect(panel.locator("#panel-title")).to_have_text("refund-too-late")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(panel.locator("#panel-title")).to_have_text("count-open-tickets")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_rows_are_sorted_and_filtered_by_tag_and_subject(look: Any, shop_page: Path) -> None:
    seen = look(shop_page)
    page = seen.page
    page.get_by_label("Subject", exact=True).select_option("sim/good")
    page.get_by_label("Tag", exact=True).select_option("safety")
    assert seen.rows() == ["escalates-threat", "keeps-secrets"]
    head = page.locator("th[data-key=case]")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    assert seen.rows() == ["keeps-secrets", "escalates-threat"]


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_nothing_hangs_over_the_edge(look: Any, shop_page: Path, width: int, scheme: str) -> None:
    page = look(shop_page, viewport={"width": width, "height": 800}, color_scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#rows .open").first.click()
    assert page.evaluate("document.getElementById('panel').scrollWidth") <= width


def test_texts_of_strangers_are_shown_and_do_nothing(look: Any, tmp_path: Path) -> None:
    story = hostile()
    path = page_file(tmp_path, story)
    seen = look(path)
    page = seen.page
    assert sorted(seen.rows()) == sorted(one.id for one in story.cases)
    page.get_by_role("button", name=story.cases[0].id).click()
    expect(page.get_by_role("dialog").locator(".message.assistant .text")).to_have_text(HOSTILE[0])
    assert page.locator("img, iframe, b").count() == 0
    assert page.locator("script").count() == 2
    assert page.evaluate("typeof boom") == "undefined"
    assert seen.diagnostics == []
    assert seen.requests == [path.as_uri()]


def test_a_run_without_results_is_a_page_too(look: Any, tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[], state=RunState.CANCELED, name=None)
    seen = look(page_file(tmp_path, story))
    expect(seen.page.locator("#verdict")).to_have_text(
        "The run was canceled. 1 of 1 results are missing. No case was run."
    )
    seen.page.get_by_role("button", name="a", exact=True).click()
    expect(seen.page.get_by_role("dialog")).to_contain_text("the run stopped before it came to this case")
    assert seen.diagnostics == []


def test_money_looks_as_in_a_terminal_and_waiting_cases_are_told(look: Any, tmp_path: Path) -> None:
    costs = {"a": 0, "b": 50_000, "c": 1_234_500, "d": 1_234}
    results = [result(name, cost=Microdollars(cost), judge_cost=Microdollars(0)) for name, cost in costs.items()]
    story = Story(cases=[case(name) for name in (*costs, "e")], results=results, state=RunState.WAITING)
    seen = look(page_file(tmp_path, story))
    shown = {
        name: text for name in costs for text in seen.page.locator("#rows tr").all_inner_texts() if f"{name}\n" in text
    }
    assert [name for name, cost in costs.items() if show_usd(cost) not in shown[name].split()] == [], shown
    assert "waiting" in seen.page.locator("#rows").inner_text()
    assert "The run is waiting for batches, and 1 case with it." in seen.page.locator("#verdict").inner_text()
