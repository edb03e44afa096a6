"""The ways through the page: keys, rows that open, groups, filters, lanes, and the run before."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.server import Server

from .demo import start_suite

PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def runs(server: Server) -> dict[str, str]:
    """Two nightly runs, one with two subjects, and questions in a row between them."""
    made = {"both": start_suite(server, "careful", "hasty", name="both")}
    made["first"] = start_suite(server, "careful", name="nightly")
    server.until(made["first"], "completed")
    questions = [server.ask(f"# Question **{number}**", agent=agent) for number, agent in enumerate(["sim/echo"] * 4)]
    for run in (*questions, made["both"]):
        server.until(run, "completed")
    made["second"] = start_suite(server, "hasty", name="nightly")
    server.until(made["second"], "completed")
    return made


def in_focus(page: Page) -> str:
    return str(page.evaluate("document.activeElement.innerText.split('\\n')[0]"))


def test_a_row_of_the_matrix_opens_the_case_and_keys_lead_to_the_next(
    look: Any, server: Server, runs: dict[str, str]
) -> None:
    seen = look(server, f"runs/{runs['both']}")
    page = seen.page
    matrix = page.get_by_role("region", name="Matrix of cases and subjects")
    matrix.locator("tbody tr").first.click(position={"x": 300, "y": 12})  # beside its cells
    panel = page.get_by_role("dialog")
    title, subjects = panel.locator("h2"), panel.get_by_role("group", name="Subject")
    expect(title).to_have_text("help-desk/refund-1")
    expect(panel).to_contain_text("The customer learns what happens next about ")
    expect(subjects.get_by_role("button")).to_have_text(["careful: passed", "hasty: failed"])
    expect(subjects.locator("[aria-pressed=true]")).to_have_text("hasty: failed")  # what went wrong
    page.keyboard.press("j")
    expect(title).to_have_text("help-desk/parcel-3")
    expect(panel.locator(".steps-between")).to_contain_text("2 of 5")
    subjects.get_by_role("button", name="careful").click()
    expect(panel.locator(".panel-head .badge")).to_have_text("passed")
    page.keyboard.press("k")
    expect(title).to_have_text("help-desk/refund-1")
    expect(panel.get_by_role("button", name="Previous")).to_be_disabled()
    panel.get_by_role("button", name="Next").click()
    expect(title).to_have_text("help-desk/parcel-3")
    page.get_by_label("Why (kept with the review)").fill("jk")  # who writes goes nowhere
    expect(title).to_have_text("help-desk/parcel-3")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    page.keyboard.press("/")
    expect(page.get_by_label("Search cases")).to_be_focused()
    assert seen.diagnostics == []


def test_whoever_goes_on_while_a_panel_ends_keeps_the_focus(look: Any, server: Server, runs: dict[str, str]) -> None:
    page = look(server, f"runs/{runs['both']}").page
    matrix = page.get_by_role("region", name="Matrix of cases and subjects")
    matrix.locator("tbody tr").first.click(position={"x": 300, "y": 12})
    panel = page.get_by_role("dialog")
    expect(panel.locator("h2")).to_be_visible()
    page.evaluate(  # as a browser does that closes it without asking: its entry leaves the history later
        "() => { document.querySelector('dialog').close(); document.querySelector('main input[type=search]').focus(); }"
    )
    expect(page.locator("dialog")).to_have_count(0)
    page.wait_for_function("() => !history.state?.panel")
    expect(page.get_by_label("Search cases")).to_be_focused()


def test_small_runs_stand_in_one_row_that_opens_and_titles_are_words(
    look: Any, server: Server, runs: dict[str, str]
) -> None:
    page = look(server).page
    names = page.get_by_role("table", name="Runs").locator(".body .title")
    expect(names).to_have_text(["nightly", "▸ 4 questions", "nightly", "both"])
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert in_focus(page) == "▸ 4 questions"
    page.keyboard.press("Enter")
    questions = [f"sim/echo: Question {number}" for number in (3, 2, 1, 0)]
    expect(names).to_have_text(["nightly", "▾ 4 questions", *questions, "nightly", "both"])
    page.keyboard.press("k")
    assert in_focus(page) == "nightly"
    page.keyboard.press("/")
    page.keyboard.type("question")
    expect(names).to_have_text(questions)  # what is searched for is shown one by one


def test_runs_are_found_by_agent_user_and_day(look: Any, server: Server, runs: dict[str, str]) -> None:
    page = look(server).page
    rows = page.get_by_role("table", name="Runs").get_by_role("link")
    page.get_by_role("button", name="Agent, user, date").click()
    page.get_by_label("Agent called").fill("hasty")
    expect(rows).to_have_count(2)
    page.get_by_label("to", exact=True).fill("2020-01-31")
    expect(page.get_by_role("heading", name="No run fits these filters")).to_be_visible()
    page.get_by_label("to", exact=True).fill("")
    page.get_by_label("From").fill("2020-01-31")
    expect(rows).to_have_count(2)
    page.reload()
    expect(page.get_by_label("Agent called")).to_have_value("hasty")
    expect(rows).to_have_count(2)
    page.get_by_label("Started by").fill("nobody")
    page.get_by_role("button", name="Show all runs").click()
    expect(page.get_by_label("Agent called")).to_have_value("")
    expect(rows).to_have_count(3)


def test_the_timeline_has_lanes_and_is_looked_at_closer(look: Any, server: Server, runs: dict[str, str]) -> None:
    page = look(server, f"runs/{runs['both']}/timeline", viewport={"width": 1200, "height": 3200}).page
    lanes = page.locator(".time-rows .lane")
    expect(lanes.locator(".title")).to_have_text(["▾ careful 16 calls", "▾ hasty 16 calls", "▾ referee 32 calls"])
    lanes.first.click()
    expect(page.get_by_role("button", name="case/help-desk/hours-0/@careful/1/1")).to_have_count(0)
    whole = page.locator(".tick").last.inner_text()
    page.get_by_role("button", name="Zoom in").click()
    expect(page.locator(".zoom")).to_contain_text(f"of {whole}")
    page.keyboard.press("0")
    expect(page.locator(".tick").last).to_have_text(whole)
    axis = page.locator(".ticks").bounding_box()
    page.mouse.move(axis["x"] + 0.1 * axis["width"], axis["y"] + 5)
    page.mouse.down()
    page.mouse.move(axis["x"] + 0.3 * axis["width"], axis["y"] + 5)
    page.mouse.up()
    expect(page.get_by_role("button", name="Earlier")).to_be_enabled()
    page.get_by_role("button", name="In order of calls").click()
    expect(lanes).to_have_count(0)


def test_a_lane_says_that_not_all_of_its_calls_are_drawn(look: Any, server: Server, runs: dict[str, str]) -> None:
    seen = look(server, f"runs/{runs['both']}")

    def first(route: Any) -> None:
        found = route.fetch().json()
        route.fulfill(json={"calls": found["calls"][:9], "next": None})

    seen.page.route("**/attempts?**", first)
    seen.go(f"runs/{runs['both']}/timeline")
    expect(seen.page.locator(".time-rows .lane .title").first).to_contain_text("drawn so far")
    expect(seen.page.locator(".foot")).to_contain_text("9 of 64 calls are drawn")


def test_a_run_is_compared_with_the_one_before_it(look: Any, server: Server, runs: dict[str, str]) -> None:
    page = look(server, f"runs/{runs['second']}").page
    page.get_by_role("link", name="Against the previous run").click()
    expect(page.get_by_label("Verdict")).to_contain_text("careful in A is compared with hasty in B")
    assert f"a={runs['first']}&b={runs['second']}" in page.url
    page.goto(f"{server.url}/#/compare?b={runs['second']}")
    page.get_by_role("link", name="Compare it with the run before it").click()
    expect(page.get_by_label("Verdict")).to_contain_text("careful in A is compared with hasty in B")
    page.goto(f"{server.url}/#/runs/{runs['first']}")
    expect(page.get_by_role("link", name="Compare", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Against the previous run")).to_have_count(0)


def test_a_menu_that_goes_on_beside_the_screen_says_so(look: Any, server: Server) -> None:
    page = look(server, "runs", **PHONE).page
    arrows = page.locator(".top .arrow")
    expect(arrows).to_have_text(["›"])
    arrows.click()
    expect(arrows.first).to_have_text("‹")
    page.goto(f"{server.url}/#/compare")
    expect(page.locator(".top [aria-current=page]")).to_be_in_viewport(ratio=1)
    expect(look(server, "runs").page.locator(".top .arrow")).to_have_count(0)
