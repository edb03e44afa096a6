"""What is stored, looked at in a real browser: runs, one run, a suite, a comparison; by everybody, on any screen."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.api.server import Server
from tests.variants import first_of

from .demo import HOSTILE, start_battle, start_suite, submit_task

AXE = Path(__file__).parents[1] / "data" / "axe" / "axe.min.js"


@dataclass(frozen=True)
class Filled:
    """A server with something of everything, by their ids."""

    server: Server
    both: str
    before: str
    after: str
    battle: str
    hostile: str
    task: str

    @property
    def places(self) -> dict[str, str]:
        return {
            "runs": "runs",
            "results": f"runs/{self.both}",
            "calls": f"runs/{self.both}/calls",
            "timeline": f"runs/{self.both}/timeline",
            "events": f"runs/{self.both}/events",
            "battle": f"runs/{self.battle}",
            "compare": f"compare?a={self.before}&b={self.after}",
            "tasks": "tasks",
            "task": f"tasks/{self.task}",
            "start battle": "start/battle",
            "start scale": "start/scale",
            "start suite": "start/suite",
            "start council": "start/council",
            "start task": "start/task",
        }


PLACES = ("runs", "results", "calls", "timeline", "events", "battle", "compare", "tasks", "task", "start battle",
          "start scale", "start suite", "start council", "start task")  # fmt: skip


@pytest.fixture(scope="module")
def filled(server: Server) -> Filled:
    made = Filled(
        server=server,
        both=start_suite(server, "careful", "hasty", name="both"),
        before=start_suite(server, "careful", name="before"),
        after=start_suite(server, "hasty", name="after"),
        battle=start_battle(server),
        hostile=server.ask("hello", agent="hostile", name="hostile"),
        task=submit_task(server, "Add the opening hours."),
    )
    for run in (made.both, made.before, made.after, made.battle, made.hostile):
        server.until(run, "completed")
    server.until(made.task, "waiting")
    return made


def settled(page: Page) -> None:
    """Wait until everything that a view shows is there."""
    expect(page.locator("main h1, main .card").first).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def test_runs_are_found_by_filter_and_search(look: Any, filled: Filled) -> None:
    page = look(filled.server).page
    rows = page.get_by_role("table", name="Runs").get_by_role("link")
    expect(rows).to_have_count(6)
    page.get_by_label("Kind of work").select_option("suite")
    expect(rows).to_have_count(3)
    page.get_by_label("Search runs").fill("bef")
    expect(rows).to_have_text([f"beforesuite · {filled.before} nightly careful: help-desk.yaml"])
    page.get_by_role("button", name="Failed").click()
    expect(page.get_by_role("heading", name="No run fits these filters")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Search runs")).to_have_value("bef")
    page.get_by_role("button", name="Show all runs").click()
    expect(rows).to_have_count(6)


def test_a_call_is_read_in_full(look: Any, filled: Filled) -> None:
    seen = look(filled.server, f"runs/{filled.both}/calls")
    page = seen.page
    page.get_by_role("button", name="case/help-desk/hours-0/@careful/1/1", exact=True).click()
    panel = page.get_by_role("dialog")
    expect(panel.locator(".message .role")).to_have_text(["user", "assistant"])
    expect(panel.locator(".message.assistant strong")).to_have_text("before four o'clock")
    expect(panel.get_by_role("row").nth(1)).to_contain_text("succeeded")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    page.get_by_role("button", name="case/help-desk/hours-0/@careful/1/1", exact=True).click()
    expect(panel).to_be_visible()
    page.go_back()
    expect(panel).to_have_count(0)
    expect(page.get_by_role("table", name="Calls")).to_be_visible()
    assert seen.diagnostics == []
    assert {url.split("/")[2] for url in seen.requests} == {filled.server.url.split("/")[2]}


def test_the_timeline_tells_what_every_attempt_did(look: Any, filled: Filled) -> None:
    flaky = filled.server.ask("hello", agent="sim/flaky")
    filled.server.until(flaky, "completed")
    page = look(filled.server, f"runs/{flaky}/timeline").page
    track = page.locator(".track")
    expect(track).to_have_count(1)
    took = page.locator(".run-head .facts div", has_text="Took").locator("dd").inner_text()
    expect(page.get_by_role("columnheader").nth(1)).to_have_text(f"from 0 ms to {took}")  # of the whole run
    told = track.get_attribute("aria-label") or ""
    assert [part.split(",")[0].split(" ")[0] for part in told.split("; ")] == ["attempt", "waited", "attempt"]
    assert "attempt 1: failed" in told
    assert "attempt 2: succeeded" in told
    assert [one.get_attribute("class") for one in track.locator(".span").all()] == [
        "span t-failed",
        "span t-waiting",
        "span t-wire",
    ]


def test_markup_in_what_models_write_stays_text(look: Any, filled: Filled) -> None:
    seen = look(filled.server, f"runs/{filled.hostile}/calls")
    page = seen.page
    page.get_by_role("button", name="ask", exact=True).click()
    said = page.get_by_role("dialog").locator(".message.assistant .markdown")
    for line in HOSTILE.splitlines()[:2]:
        expect(said).to_contain_text(line)
    expect(said).to_contain_text("[press here](javascript:alert(1))")
    expect(said.locator("strong")).to_have_text("this")
    assert said.locator("script, img, a").count() == 0
    page.get_by_role("button", name="as written").click()
    expect(page.get_by_role("dialog").locator(".message.assistant pre")).to_have_text(HOSTILE)
    assert "broken" not in page.title()
    assert seen.diagnostics == []


LARGE_PALETTE = "\x1b[38;5;1mone\x1b[0m \x1b[1;38;5;31mtwo\x1b[0m \x1b[38:2:1:2:3mthree\x1b(B\x1b[m four"


def test_an_unnamed_question_is_told_by_what_it_asks_and_opens_on_its_answer(look: Any, filled: Filled) -> None:
    run = filled.server.ask("Say **hello**\n\nand more", agent="careful")
    filled.server.until(run, "completed")
    page = look(filled.server).page
    page.get_by_role("link", name="careful: Say hello").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("careful: Say hello")
    answer = page.get_by_role("region", name="Answer")
    expect(answer.locator(".message.user strong")).to_have_text("hello")
    expect(answer.locator(".message.assistant strong")).to_have_text("before four o'clock")


def test_colours_of_a_larger_palette_are_left_out(look: Any, filled: Filled) -> None:
    page = look(filled.server).page
    pieces = page.evaluate("async (text) => (await import('/page/text.js')).ansiPieces(text)", LARGE_PALETTE)
    assert "".join(text for text, _ in pieces) == "one two three four"
    assert [kind for _, kind in pieces if kind] == ["ansi-bold"]


def test_what_is_made_of_markdown_holds_no_sequence(look: Any, filled: Filled) -> None:
    page = look(filled.server).page
    page.evaluate(
        """async (text) => {
          const { ModelText } = await import('/page/text.js');
          const { html, render } = await import('/page/html.js');
          const place = document.body.appendChild(document.createElement("div"));
          place.id = "made";
          render(html`<${ModelText} text=${text} />`, place);
        }""",
        "**bold** and \x1b[32mgreen\x1b[0m",
    )
    expect(page.locator("#made strong")).to_have_text("bold")
    assert page.locator("#made .markdown").inner_text().strip() == "bold and green"


def test_ansi_sequences_become_colours_or_nothing(look: Any, filled: Filled) -> None:
    page = look(filled.server).page
    written = "a\x1b[31mred\x1b[0m\x1b[2Jb\x1b]0;title\x07c\x9b32mgreen\x9b0m\x9b2Jd\x9d0;title\x9c"
    pieces = page.evaluate("async (text) => (await import('/page/text.js')).ansiPieces(text)", written)
    assert pieces == [["a", ""], ["red", "ansi-red"], ["bc", ""], ["green", "ansi-green"], ["d", ""]]


def test_a_suite_shows_figures_charts_and_a_matrix(look: Any, filled: Filled) -> None:
    page = look(filled.server, f"runs/{filled.both}").page
    expect(page.get_by_label("Verdict")).to_contain_text("did not pass")
    subjects = page.get_by_role("region", name="Subjects", exact=True)
    expect(subjects.get_by_role("row")).to_have_count(3)
    assert "between" in (subjects.locator("svg").first.get_attribute("aria-label") or "")
    expect(page.locator(".charts h3")).to_have_text(["How cases ended", "Scores", "Time an answer took", "Cost"])
    first = filled.server.get(f"/api/suites/{filled.both}/summary").json["subjects"][0]
    of_a_case = (first["cost_usd"] + first["judge_cost_usd"]) / first["cases_run"]
    expect(page.locator(".charts .card").last).to_contain_text(f"${of_a_case:.2g} a case")
    cells = page.get_by_role("region", name="Matrix of cases and subjects").locator(".cell")
    expect(cells).to_have_count(10)  # on five cases they differ
    assert cells.first.get_attribute("aria-label") == "help-desk/refund-1, careful: passed, 0.95"
    page.get_by_role("button", name="All cases").click()
    expect(cells).to_have_count(32)
    page.get_by_label("Search cases").fill("parcel-3")
    expect(page.get_by_role("table", name="Cases").get_by_role("button")).to_have_count(1)  # what did not pass
    page.get_by_role("group", name="How they ended").get_by_role("button", name="All").click()
    expect(page.get_by_role("table", name="Cases").get_by_role("button")).to_have_count(2)
    page.get_by_role("link", name="Calls").first.click()
    expect(page.get_by_role("table", name="Calls")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Search cases")).to_have_value("parcel-3")
    page.get_by_label("Search cases").scroll_into_view_if_needed()
    expect(page.get_by_role("table", name="Cases").get_by_role("button")).to_have_count(2)
    assert "%" in subjects.get_by_role("row").nth(1).locator("td").nth(1).inner_text()  # the ends of the interval


def test_a_verdict_is_reviewed_and_the_agreement_changes(look: Any, filled: Filled) -> None:
    page = look(filled.server, f"runs/{filled.before}").page
    expect(page.get_by_role("heading", name="Cases", exact=True)).to_be_visible()
    assert page.locator(".agreement").count() == 0
    table = page.get_by_role("table", name="Cases")
    page.get_by_role("group", name="How they ended").get_by_role("button", name="All").click()
    table.get_by_role("button", name="help-desk/complaint-7").click()
    page.get_by_label("Why (kept with the review)").fill("It is honest.")
    page.get_by_role("button", name="Wrong").click()
    expect(page.get_by_role("dialog")).to_contain_text("Reviewed as wrong: It is honest.")
    page.keyboard.press("Escape")
    expect(page.locator(".agreement")).to_contain_text("in 0% of 1 reviewed verdict (")
    table.get_by_role("button", name="help-desk/hours-0").click()
    page.get_by_role("button", name="Right", exact=True).click()
    expect(page.get_by_role("button", name="✓ Right")).to_be_visible()
    page.reload()
    expect(page.locator(".agreement")).to_contain_text("in 50% of 2 reviewed verdicts")
    stored = filled.server.get(f"/api/reviews?run={filled.before}").json["reviews"]
    assert sorted((one["opinion"], one["note"]) for one in stored) == [("right", ""), ("wrong", "It is honest.")]


def test_two_runs_are_compared_pair_by_pair(look: Any, filled: Filled) -> None:
    seen = look(filled.server, "compare")
    page = seen.page
    pick(page, "Before (A)", "bef")
    pick(page, "After (B)", "after")
    expect(page.get_by_label("Verdict")).to_contain_text("careful in A is compared with hasty in B")
    page.get_by_role("button", name="Worse 5").click()
    pairs = page.get_by_role("table", name="Pairs").get_by_role("button")
    expect(pairs).to_have_count(5)
    assert server_says_worse(filled) == 5
    page.get_by_role("button", name="Same result").click()
    page.get_by_label("Search cases").fill("HOURS-0")
    expect(pairs).to_have_count(1)
    expect(pairs).to_contain_text("another answer")
    page.get_by_role("button", name="help-desk/hours-0").click()
    panel = page.get_by_role("dialog")
    expect(panel.get_by_label("Answer A").locator("del").filter(has_text="four").first).to_be_visible()
    expect(panel.get_by_label("Answer B").locator("ins").filter(has_text="five").first).to_be_visible()
    expect(panel.get_by_label("Answer B")).to_contain_text("A colleague looks at it today")
    expect(panel.locator(".message.user")).to_have_text(re.compile("I ask about opening hours"))
    assert not [url for url in seen.requests if "/report" in url]  # nobody loads two whole runs


def pick(page: Page, side: str, name: str) -> None:
    """Choose the run of a side by searching for it."""
    page.get_by_role("button", name=side).click()
    found = page.get_by_role("group", name=f"Runs for {side}")
    found.get_by_label("Search suite runs").fill(name)
    expect(found.get_by_role("listitem")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=side)).to_contain_text(name)


def server_says_worse(filled: Filled) -> int:
    found = filled.server.get(f"/api/compare?a={filled.before}&b={filled.after}").json
    return len(found["subjects"][0]["regressions"])


def test_two_agents_of_one_run_are_compared(look: Any, filled: Filled) -> None:
    page = look(filled.server, f"runs/{filled.both}").page
    page.get_by_role("link", name="Compare two of them").click()
    expect(page.get_by_label("Verdict")).to_contain_text("hasty in A is compared with careful in B")
    page.get_by_role("button", name="Swap the sides").click()
    expect(page.get_by_label("Verdict")).to_contain_text("careful in A is compared with hasty in B")
    expect(page.get_by_role("button", name="Worse 5")).to_be_visible()
    expect(page.get_by_role("region", name="Figures").get_by_role("row").nth(1)).to_contain_text("careful → hasty")
    page.get_by_label("Agent of B").select_option("")
    expect(page.get_by_text("This is one run. Choose an agent of it on each side.")).to_be_visible()
    page.get_by_label("Agent of B").select_option("careful")
    expect(page.get_by_label("Verdict")).to_contain_text("same")


def test_words_that_agree_by_chance_are_not_shown_as_the_same(look: Any, filled: Filled) -> None:
    page = look(filled.server).page
    texts = ["We close it on Mondays for good", "They open it at noon for good"]
    found = page.evaluate("async ([a, b]) => (await import('/page/difference.js')).differences(a, b)", texts)
    assert found["before"] == [["out", "We close it on Mondays"], ["same", " for good"]]
    assert found["after"] == [["in", "They open it at noon"], ["same", " for good"]]


def test_back_leads_to_where_one_was_in_a_list(look: Any, filled: Filled) -> None:
    page = look(filled.server, viewport={"width": 1000, "height": 260}).page
    rows = page.get_by_role("table", name="Runs").get_by_role("link")
    expect(rows.last).to_be_visible()
    rows.last.scroll_into_view_if_needed()
    place = page.evaluate("scrollY")
    assert place > 100
    rows.last.click()
    expect(page.get_by_role("navigation", name="Parts of the run")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("getComputedStyle(document.querySelector('main')).outlineStyle") == "none"
    page.go_back()
    expect(rows.last).to_be_visible()
    page.wait_for_function("place => scrollY === place", arg=place)
    page.go_forward()
    expect(page.get_by_role("navigation", name="Parts of the run")).to_be_visible()
    page.wait_for_function("scrollY === 0")


DIFF = """diff --git a/notes.sql b/notes.sql
index 1..2 100644
--- a/notes.sql
+++ b/notes.sql
@@ -1,3 +1,3 @@ head
 SELECT 1;
--- an old remark
++++ a new remark
 SELECT 2;
diff --git a/b b/b
--- a/b
+++ b/b
@@ -1 +1 @@
-a
+b"""


def test_lines_of_a_diff_are_told_by_their_place_and_not_by_their_text(look: Any, filled: Filled) -> None:
    page = look(filled.server).page
    kinds = page.evaluate("async (lines) => (await import('/page/diff.js')).kindsOf(lines)", DIFF.split("\n"))
    head, change = ["file", "meta", "meta", "meta", "hunk"], ["", "out", "in", ""]
    assert kinds == [*head, *change, "file", "meta", "meta", "hunk", "out", "in"]
    files = page.evaluate("async (diff) => (await import('/page/diff.js')).filesOf(diff)", DIFF)
    assert [(one["name"], one["added"], one["removed"]) for one in files] == [("notes.sql", 1, 1), ("b", 1, 1)]


def test_a_place_that_is_not_there_says_where_to_go(look: Any, filled: Filled) -> None:
    seen = look(filled.server, "runs/nothing")
    expect(seen.page.get_by_role("alert")).to_contain_text("not found")
    expect(seen.page.get_by_role("link", name="All runs")).to_be_visible()
    nowhere = seen.page.get_by_role("heading", name="There is no such page")
    for place in ("elsewhere", "runs/%zz", "tasks/%E0%A4%A", "runs/a%2Fb", "runs/.."):
        seen.go("runs")
        expect(seen.page.get_by_role("heading", name="Runs")).to_be_visible()
        seen.go(place)
        expect(nowhere).to_be_visible()
    seen.page.reload()
    expect(nowhere).to_be_visible()


@pytest.mark.parametrize("place", first_of(PLACES, 5))
def test_no_view_has_a_serious_barrier_and_all_fit_a_phone(look: Any, filled: Filled, place: str) -> None:
    page = look(filled.server, filled.places[place]).page
    settled(page)
    assert barriers(page) == []
    assert page.evaluate(OUT_OF_REACH) == []
    assert_fits_a_phone(page)


@pytest.mark.parametrize(
    ("place", "button"),
    [("calls", "case/help-desk/hours-0/@careful/1/1"), ("results", "help-desk/refund-1, hasty: failed, 0.35")],
)
def test_no_panel_has_a_serious_barrier(look: Any, filled: Filled, place: str, button: str) -> None:
    page = look(filled.server, filled.places[place]).page
    page.get_by_role("button", name=button, exact=True).first.click()
    expect(page.get_by_role("dialog").locator(".message").first).to_be_visible()
    assert barriers(page) == []


# What can be pressed or filled in and is left out, or taken before its turn, when one goes on with Tab.
OUT_OF_REACH = """() => {
  const all = [...document.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")];
  const left = all.filter((one) => one.tabIndex !== 0 && !one.disabled && one.id !== "main");
  return left.map((one) => one.outerHTML.slice(0, 200));
}"""


def barriers(page: Page) -> list[str]:
    """Return what axe finds of serious and critical barriers, in light and in dark colours."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return [told for scheme in ("dark", "light") for told in _barriers_in(page, scheme)]


def _barriers_in(page: Page, scheme: Literal["dark", "light"]) -> list[str]:
    page.emulate_media(color_scheme=scheme)
    found = page.evaluate("async () => (await axe.run(document, { resultTypes: ['violations'] })).violations")
    return [
        f"{scheme}, {one['id']}: {node['html'][:200]} {node['any'][0]['message'] if node['any'] else ''}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


def assert_fits_a_phone(page: Page) -> None:
    """Make an open page as narrow as a phone: nothing hangs over its edge."""
    page.set_viewport_size({"width": 375, "height": 812})
    page.wait_for_function("innerWidth === 375")
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def tab_to(page: Page, wanted: Locator) -> None:
    """Go on with Tab until something is reached, as people do."""
    expect(wanted).to_be_visible()
    for _ in range(60):
        page.keyboard.press("Tab")
        if wanted.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"Tab does not reach {wanted}")


ENTRY_WHEN_CLOSED = """() => { window.entryWhenClosed = new Promise((tell) => new MutationObserver(
  () => document.querySelector("dialog") || tell(history.state),
).observe(document.body, { childList: true, subtree: true })); }"""


@pytest.mark.parametrize("close", ["Escape", "Close", "backdrop"])
def test_a_panel_that_closed_has_left_the_history_so_the_next_step_is_not_undone(
    look: Any, filled: Filled, close: str
) -> None:
    page = look(filled.server, f"runs/{filled.both}/calls").page
    page.get_by_role("table", name="Calls").get_by_role("button").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert "panel" in page.evaluate("history.state")
    page.evaluate(ENTRY_WHEN_CLOSED)
    match close:
        case "Escape":
            page.keyboard.press("Escape")
        case "Close":
            page.get_by_role("dialog").get_by_role("button", name="Close").click()
        case _:
            page.mouse.click(5, 5)
    assert "panel" not in page.evaluate("window.entryWhenClosed")
    page.goto(f"{filled.server.url}/#/tasks")
    expect(page.get_by_role("link", name="Add the opening hours.")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("table", name="Calls")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_everything_is_reached_with_the_keyboard(look: Any, filled: Filled) -> None:
    page = look(filled.server).page
    expect(page.get_by_role("link", name="both")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    tab_to(page, page.get_by_role("link", name="both"))
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    tab_to(page, page.get_by_role("navigation", name="Parts of the run").get_by_role("link", name="Calls"))
    page.keyboard.press("Enter")
    first = page.get_by_role("table", name="Calls").get_by_role("button").first
    tab_to(page, first)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(first).to_be_focused()
    page.goto(f"{filled.server.url}/#/start/battle")
    expect(page.locator("main")).to_be_focused()
    tab_to(page, page.get_by_label("Goal"))
    page.keyboard.type("A table is booked")
    tab_to(page, page.get_by_role("button", name="Start the battle"))
    page.goto(f"{filled.server.url}/#/tasks")
    tab_to(page, page.get_by_role("link", name="Add the opening hours."))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("Feedback"))
    page.keyboard.type("Shorter.")
    tab_to(page, page.get_by_role("button", name="Reject with feedback"))
