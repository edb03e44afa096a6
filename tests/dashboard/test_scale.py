"""Scale tests on the page: how battles ended and how sure that is, each of them, and what is known of a new prompt."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.api.server import Server

from .demo import SETTINGS, Demo, agents
from .test_views import assert_fits_a_phone, barriers, settled
from .work import REASONS, scale_agents, start_scale


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("scale")
    made = Demo.at(folder)
    made.project.declare(agents(folder) + scale_agents(folder), SETTINGS)
    return made


@pytest.fixture(scope="module")
def proposed(server: Server) -> str:
    return ended(server, start_scale(server))


@pytest.fixture(scope="module")
def tried(server: Server) -> str:
    return ended(server, start_scale(server, tryRevised=True))


def ended(server: Server, run: str) -> str:
    server.until(run, "completed")
    return run


def test_a_scale_test_shows_how_battles_ended_with_intervals(look: Any, server: Server, proposed: str) -> None:
    seen = look(server, f"runs/{proposed}")
    page = seen.page
    verdict = page.get_by_label("Verdict")
    expect(verdict).to_contain_text("2 of 8 battles reached the goal")
    expect(verdict).to_have_class("card verdict plain")  # nobody said which share would be good
    rows = page.get_by_role("region", name="How battles ended").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("7% to 59%")
    expect(rows.nth(1).get_by_role("img")).to_have_attribute("aria-label", "Share 25%, between 7% and 59%")
    expect(rows.nth(2)).to_contain_text("limit")
    facts = page.get_by_label("Verdict").locator(".facts")
    for words in ("median 2", "p50", "p90", "p99"):
        expect(facts).to_contain_text(words)
    battle = page.get_by_role("table", name="Battles").get_by_role("link", name="2. A table for six is booked")
    battle.click()
    expect(page.get_by_role("log", name="Conversation")).to_contain_text("The number is 4711")
    page.get_by_role("navigation", name="Where this is").get_by_role("link").last.click()
    expect(page.get_by_role("table", name="Battles")).to_be_visible()
    assert seen.diagnostics == []


def test_a_revised_prompt_that_was_not_played_is_never_called_better(look: Any, server: Server, proposed: str) -> None:
    page = look(server, f"runs/{proposed}").page
    expect(page.get_by_text("It was not played, so nothing says that it is better.")).to_be_visible()
    expect(page.get_by_role("region", name="Reasons").get_by_role("listitem")).to_have_text(REASONS)
    assert "State" in " ".join(page.get_by_label("Revised prompt").locator("ins").all_inner_texts())
    assert "time." in " ".join(page.get_by_label("Prompt before").locator("del").all_inner_texts())
    assert page.get_by_label("Comparison by pairs").count() == 0
    assert page.locator(".word", has_text="better").count() == 0


def test_a_revised_prompt_that_was_played_is_compared_by_pairs(look: Any, server: Server, tried: str) -> None:
    page = look(server, f"runs/{tried}").page
    compared = page.get_by_label("Comparison by pairs")
    expect(compared).to_contain_text("better")
    expect(compared).to_contain_text("in 8 pairs: 2 reached the goal before, 8 with it")
    expect(compared.locator(".facts")).to_contain_text("p = 0.031")
    page.get_by_role("link", name="battle 1 with the revised prompt").click()
    expect(page.get_by_label("Outcome")).to_contain_text("The goal is reached after 1 reply")


def test_a_scale_test_is_followed_while_it_is_played(look: Any, server: Server) -> None:
    alone = {"goals": [{"goal": "A dog may come along"}], "revision": False, "reviser": None}
    run = start_scale(server, counterpart="me", runCount=1, **alone)
    page = look(server, f"runs/{run}").page
    expect(page.get_by_label("Verdict")).to_contain_text("0 of 1")
    link = page.get_by_role("table", name="Battles").get_by_role("link", name="1. A dog may come along")
    expect(link).to_be_visible()
    (question,) = server.get(f"/api/runs/{run}/questions").json["questions"]
    sent = server.post(f"/api/runs/{run}/answer", {"text": "It is small.", "key": question["key"]})
    assert sent.status == 200
    expect(page.get_by_label("Verdict")).to_contain_text("0 of 1 battle reached the goal")


def test_no_scale_test_has_a_serious_barrier_and_all_fit_a_phone_and_the_keyboard(
    look: Any, server: Server, proposed: str, tried: str
) -> None:
    for run in (proposed, tried):
        page = look(server, f"runs/{run}").page
        expect(page.get_by_role("heading", name="Revised prompt")).to_be_visible()
        settled(page)
        assert barriers(page) == []
        assert_fits_a_phone(page)
    page.get_by_role("table", name="Battles").get_by_role("link", name="1. A table").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("log", name="Conversation")).to_be_visible()
