"""Councils on the page: followed while they argue, answered as a person, told something, stopped, and read."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.server import Server

from .demo import SETTINGS, Demo, agents
from .test_views import barriers, settled
from .work import PLAN, council_agents, evaluation_of_person, start_council


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("council")
    made = Demo.at(folder)
    made.project.declare(agents(folder) + council_agents(folder), SETTINGS)
    return made


@pytest.fixture(scope="module")
def held(server: Server) -> str:
    """A council that has come to its end."""
    run = start_council(server)
    server.until(run, "completed")
    return run


def answer(page: Page, text: str) -> None:
    page.get_by_label("Answer as me").fill(text)
    page.get_by_role("button", name="Send the answer").click()


def test_a_council_is_followed_and_answered_as_its_person(look: Any, server: Server) -> None:
    run = start_council(server, "me")
    seen = look(server, f"runs/{run}")
    page: Page = seen.page
    turns = page.get_by_role("log", name="Turns")
    expect(turns.get_by_role("article")).to_have_count(3)
    expect(turns.get_by_role("status")).to_have_text("Asked to propose: me …")
    page.get_by_label("Tell all members something").fill("The landlord allows **no** sign.")
    page.get_by_role("button", name="Tell all members").click()
    expect(page.get_by_label("Intervene").get_by_role("status")).to_contain_text("Sent.")
    answer(page, "Ask the regulars first.")
    mine = turns.get_by_role("article").filter(has_text="Ask the regulars first.")
    expect(mine).to_be_visible()
    expect(page.locator(".notice", has_text="The landlord allows no sign.")).to_contain_text("before evaluate")
    expect(page.get_by_label("Question", exact=True)).to_contain_text("Write one line for each candidate")
    answer(page, evaluation_of_person(40))
    expect(page.get_by_role("heading", name="Round 2 of at most 3", exact=True)).to_be_visible()
    page.get_by_role("button", name="Round 1").click()
    row = page.get_by_role("region", name="Score matrix").get_by_role("row", name="me")
    expect(row.locator(".weighed")).to_have_text(["+40", "+40", "+40"])
    expect(mine.locator(".critique")).to_have_count(3)
    page.get_by_role("button", name="Stop with the best proposal").click()
    page.get_by_role("button", name="Really stop?").click()
    expect(page.get_by_label("Outcome")).to_contain_text("a person stopped it")
    expect(page.get_by_label("Intervene")).to_have_count(0)
    page.get_by_role("navigation", name="Where this is").get_by_role("link", name="Runs").click()
    for words in ("Councils", "deliberation"):  # what people call it, and what the store does
        page.get_by_label("Search runs").fill(words)
        expect(page.get_by_role("row", name=run)).to_contain_text("council")
    page.get_by_label("Search runs").fill("verification")
    expect(page.get_by_role("heading", name="No run fits these filters")).to_be_visible()
    assert seen.diagnostics == []


def test_what_cannot_be_told_says_why(look: Any, server: Server) -> None:
    run = start_council(server, "me")
    server.until(run, "waiting")
    page = look(server, f"runs/{run}").page
    page.get_by_label("Tell all members something").fill("x" * 100_001)
    page.get_by_role("button", name="Tell all members").click()
    expect(page.get_by_label("Intervene").get_by_role("alert")).to_contain_text("at most 100000 characters")
    assert server.post(f"/api/runs/{run}/cancel").status == 200


def test_a_council_that_is_over_shows_every_round_its_answer_and_who_dissents(
    look: Any, server: Server, held: str
) -> None:
    seen = look(server, f"runs/{held}")
    page = seen.page
    expect(page.get_by_label("Outcome")).to_contain_text("decided")
    expect(page.get_by_role("heading", name="Answer, written by scribe")).to_be_visible()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("one of us fears closed doors")
    expect(page.locator(".box.bad")).to_contain_text(
        "skeptic gave the winner −20 and prefers the proposal of bookkeeper"
    )
    lines = page.locator("svg.support")
    assert (lines.get_attribute("aria-label") or "").count("then") == 2 * 3  # three rounds of three members
    assert lines.locator("path").count() == 3
    matrix = page.get_by_role("region", name="Score matrix")
    expect(matrix.get_by_role("columnheader").locator(".member")).to_have_text(["planner", "bookkeeper", "skeptic"])
    expect(matrix.get_by_role("row", name="bookkeeper").locator(".weighed")).to_have_text(["+90", "+5"])
    page.get_by_role("button", name="Round 2").click()
    expect(matrix.get_by_role("row", name="bookkeeper").locator(".weighed")).to_have_text(["+80", "−10"])
    won = page.get_by_role("article").filter(has_text="won the round")
    expect(won.locator("strong").first).to_have_text("bookkeeper")
    expect(page.get_by_role("article").filter(has_text=PLAN.split(",")[0]).locator("em").first).to_have_text("eight")
    assert seen.diagnostics == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_council_has_a_serious_barrier(look: Any, server: Server, held: str, scheme: str) -> None:
    asking = start_council(server, "me")
    server.until(asking, "waiting")
    for run in (held, asking):
        page = look(server, f"runs/{run}", color_scheme=scheme).page
        expect(page.get_by_role("article").first).to_be_visible()
        settled(page)
        assert barriers(page) == []


def test_a_council_fits_a_phone_and_the_keyboard(look: Any, server: Server, held: str) -> None:
    page = look(server, f"runs/{held}", viewport={"width": 390, "height": 844}).page
    first = page.get_by_role("button", name="Round 1")
    expect(first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Round 1 of at most 3", exact=True)).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Round 2 of at most 3", exact=True)).to_be_visible()
