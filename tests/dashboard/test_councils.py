"""Councils on the page: followed while they argue, answered as a person, told something, stopped, and read."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.server import Server

from .demo import SETTINGS, Demo, agents
from .test_views import assert_fits_a_phone, barriers, settled
from .work import PLAN, council_agents, start_council


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


def weigh(page: Page, weight: int, critique: str) -> None:
    """Give every candidate the same."""
    for place in range(3):
        page.get_by_label("Weight of").nth(place).fill(str(weight))
        page.get_by_label("Critique of").nth(place).fill(critique)


def test_a_council_is_followed_and_answered_as_its_person(look: Any, server: Server) -> None:
    run = start_council(server, "me")
    seen = look(server, f"runs/{run}")
    page: Page = seen.page
    turns = page.get_by_role("log", name="Turns")
    expect(page.get_by_role("heading", name="What members say is not shown yet")).to_be_visible()
    expect(page.get_by_label("Answer as me")).to_be_visible()
    assert turns.count() == 0
    page.get_by_label("Tell all members something").fill("The landlord allows **no** sign.")
    page.get_by_role("button", name="Tell all members").click()
    expect(page.get_by_label("Intervene").get_by_role("status")).to_contain_text("Sent.")
    answer(page, "Ask the regulars first.")
    question = page.get_by_label("Question", exact=True)
    expect(question).to_contain_text("Write one line for each candidate")
    expect(page.get_by_role("heading", name="What members say is not shown yet")).to_be_visible()
    weigh(page, 400, "I would read that sign.")
    expect(question.get_by_role("alert")).to_have_text("A weight is a number from −100 to 100.")
    weigh(page, 40, "I would read that sign.")
    page.get_by_role("button", name="Send the weights").click()
    expect(question).to_contain_text("Round 2 of at most 3: propose")
    assert turns.count() == 0  # nor what was said in the first round, by whom
    page.get_by_role("button", name="Stop with the best proposal").click()
    page.get_by_role("button", name="Really stop?").click()
    expect(page.get_by_label("Outcome")).to_contain_text("a person stopped it")
    expect(page.get_by_label("Intervene")).to_have_count(0)
    page.get_by_role("button", name="Round 1").click()
    row = page.get_by_role("region", name="Score matrix").get_by_role("row", name="me")
    expect(row.locator(".weighed")).to_have_text(["+40", "+40", "+40"])
    mine = turns.get_by_role("article").filter(has_text="Ask the regulars first.")
    expect(mine.locator(".critique")).to_have_count(3)
    expect(page.locator(".notice", has_text="The landlord allows no sign.")).to_contain_text("before evaluate")
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


def test_no_council_has_a_serious_barrier_and_all_fit_a_phone_and_the_keyboard(
    look: Any, server: Server, held: str
) -> None:
    asking = start_council(server, "me")
    server.until(asking, "waiting")
    for run in (asking, held):
        page = look(server, f"runs/{run}").page
        expect(page.get_by_label("Outcome")).to_be_visible()
        settled(page)
        assert barriers(page) == []
        assert_fits_a_phone(page)
    page.get_by_role("button", name="Round 1").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Round 1 of at most 3", exact=True)).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Round 2 of at most 3", exact=True)).to_be_visible()


def test_nothing_tells_a_person_who_wrote_what_before_the_answer(server: Server) -> None:
    run = start_council(server, "me")
    server.until(run, "waiting")
    question = server.until_asked(run)
    for text in ("Ask the regulars first.", "nonsense"):
        found = server.get(f"/api/councils/{run}/trace").json
        assert (found["withheld_for"], found["rounds"], found["open_round"]) == (["me"], [], [])
        assert (found["winner"], found["costs"]) == (None, [])
        key = next(
            one["key"] for one in server.get(f"/api/runs/{run}/calls").json["calls"] if one["agent"] == "planner"
        )
        call = server.get(f"/api/runs/{run}/call?key={key}").json
        assert (call["state"], call["request"], call["reply"], call["withheld_for"]) == ("done", None, None, ["me"])
        assert server.get(f"/api/runs/{run}/report?format=html").status == 409
        key = question["key"]
        assert server.post(f"/api/runs/{run}/answer", {"text": text, "key": key}).status == 200
        assert server.get(f"/api/councils/{run}/trace").json["withheld_for"] == ["me"]  # before the next question too
        question = server.until_asked(run, other_than=key)
    assert question["prompt"].count("You answered:\n\n> nonsense\n\nThis cannot be used: ") == 1
    assert "Assistant:" not in question["prompt"]
    assert len(question["candidates"]) == 3
    assert server.post(f"/api/runs/{run}/cancel").status == 200
    found = server.get(f"/api/councils/{run}/trace").json
    assert found["withheld_for"] == []
    assert {one["agent"] for one in found["open_round"][0]["proposals"]} == {"planner", "skeptic", "bookkeeper", "me"}
