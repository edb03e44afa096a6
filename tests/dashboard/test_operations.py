"""Batches, the pool, chains, money and trends in a real browser: what is shown, and what can be done about it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.server import Project, Server
from tests.rehearsal import ForkedRehearsal
from tests.variants import first_of

from .demo import dollars, spent, start_suite, submit_task
from .operations import STALLS, ask_in_batch, make, start_chain
from .test_views import assert_fits_a_phone, barriers, settled


@dataclass(frozen=True)
class Operated:
    """A server with something of everything, by their ids."""

    server: Server
    project: Project
    waiting: str  # a batch that does not end by itself
    story: str  # a chain whose second step is being written
    release: str  # a chain whose second step failed
    task: str  # that a slot works on
    suite: str  # that cost something

    @property
    def places(self) -> dict[str, str]:
        return {
            "batches": "batches",
            "batch": f"batches/{self.waiting}",
            "pool": "pool",
            "chain": f"runs/{self.story}",
            "failed chain": f"runs/{self.release}",
            "money": "money",
            "trend": "trend?run=nightly",
        }


PLACES = ("batches", "batch", "pool", "chain", "failed chain", "money", "trend")


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    folder = tmp_path_factory.mktemp("operated")
    with ForkedRehearsal(faults=STALLS) as quick, ForkedRehearsal(batch_ms=3_600_000) as later:
        demo = make(folder, quick, later)
        with demo.project.serve() as server:
            for run in ask_in_batch(server, "quick", 3):
                server.until(run, "completed")
            (waits,) = ask_in_batch(server, "later")
            suite = start_suite(server, "careful", name="paid")
            server.until(suite, "completed")
            release = start_chain(server, "release")
            server.until(release, "failed")
            yield Operated(
                server=server,
                project=demo.project,
                waiting=server.until(waits, "waiting")["batches"][0]["id"],
                story=start_chain(server, "story", topic="lamps"),
                release=release,
                task=submit_task(server, "Never ends", agent="stuck"),
                suite=suite,
            )


def test_batches_show_their_state_and_what_they_saved(look: Any, operated: Operated) -> None:
    page = look(operated.server, "batches").page
    rows = page.get_by_role("table", name="Batches").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("running")
    stored = operated.server.get("/api/batches").json["batches"]
    done = [batch for batch in stored if batch["state"] == "collected"]
    expect(rows).to_have_count(len(stored) + 1)
    expect(rows.nth(2)).to_contain_text("(50%)")
    expect(page.get_by_role("region", name="All batches")).to_contain_text("(50%)")
    page.get_by_role("button", name="Collected").click()
    expect(rows).to_have_count(len(done) + 1)
    page.get_by_role("link", name=done[0]["id"]).click()
    expect(page.get_by_role("heading", name=done[0]["id"])).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    run = operated.server.get(f"/api/batches/{done[0]['id']}").json["runs"][0]["run"]
    page.get_by_role("link", name=run).click()
    expect(page.get_by_role("navigation", name="Parts of the run")).to_be_visible()


def test_batches_are_loaded_page_by_page(operated: Operated) -> None:
    server = operated.server
    everything = [batch["id"] for batch in server.get("/api/batches").json["batches"]]
    page = server.get("/api/batches?limit=1").json
    found = page["batches"]
    while page["next"] is not None:
        page = server.get(f"/api/batches?limit=1&after={page['next']}").json
        found += page["batches"]
    assert [batch["id"] for batch in found] == everything
    assert server.get("/api/batches?after=nothing").status == 404


def test_a_step_is_seen_while_it_is_written(look: Any, operated: Operated) -> None:
    seen = look(operated.server, f"runs/{operated.story}")
    steps = seen.page.get_by_role("list", name="Steps").get_by_role("listitem")
    expect(steps.locator("h2")).to_have_text(["1 plan", "2 write", "3 polish"])
    expect(steps.locator(".badge")).to_have_text(["completed", "running", "pending"])
    expect(steps.nth(1).get_by_role("log")).to_contain_text("Tell the long story of lamps")
    seen.page.reload()
    expect(steps.nth(1).get_by_role("log")).to_contain_text("Tell the long story of lamps")  # also when one comes late
    steps.first.get_by_role("button", name="Show output").click()
    expect(steps.first).to_contain_text("before four o'clock")
    assert seen.diagnostics == []


def test_a_failed_chain_says_where_and_is_resumed(look: Any, operated: Operated) -> None:
    page = look(operated.server, f"runs/{operated.release}").page
    expect(page.get_by_label("Progress")).to_contain_text("1 of 3 steps done; it stopped at 2, test.")
    steps = page.get_by_role("list", name="Steps").get_by_role("listitem")
    expect(steps.nth(1)).to_contain_text("make: *** [test] Error 2")
    (operated.project.folder / "tested").touch()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_label("Progress")).to_contain_text("3 of 3 steps done")
    expect(steps.locator(".badge")).to_have_text(["completed"] * 3)


def test_a_chain_over_rows_lists_them(look: Any, operated: Operated) -> None:
    rows = operated.project.folder / "rows.jsonl"
    rows.write_text('{"topic": "bees"}\n{"topic": "lamps"}\n', encoding="utf-8")
    words = ("chain", "run", "library/greet/chain.yaml", "--inputs", rows.name, "--name", "greetings")
    with operated.project.command(*words) as process:
        process.communicate(timeout=60)
        assert process.returncode == 0
    page = look(operated.server, "runs/greetings").page
    expect(page.get_by_label("Progress")).to_contain_text("2 of 2 rows done")
    page.get_by_role("table", name="Rows of inputs").get_by_role("button", name="2").click()
    expect(page.get_by_role("dialog", name="Row 2, completed")).to_be_visible()


def test_slots_show_what_they_do_and_are_scaled(look: Any, operated: Operated) -> None:
    page = look(operated.server, "pool").page
    slots = page.get_by_role("region", name="Slot slot-")
    expect(slots).to_have_count(2)
    expect(slots.filter(has_text="busy").get_by_role("link", name="Never ends")).to_be_visible()
    page.get_by_role("button", name="Add one").click()
    expect(slots).to_have_count(3)
    page.get_by_role("button", name="Remove one").click()
    expect(slots).to_have_count(2)
    page.get_by_role("button", name="Remove one").click()
    expect(slots).to_have_count(1)
    page.get_by_role("button", name="Remove one").click()
    expect(page.get_by_role("alert")).to_contain_text("min_slots")
    waiting = submit_task(operated.server, "Has to wait")
    expect(page.get_by_role("list", name="Queue").get_by_role("link", name="Has to wait")).to_be_visible()
    operated.server.post(f"/api/tasks/{waiting}/cancel")
    page.get_by_role("link", name="Board of tasks").click()
    page.get_by_role("link", name="Pool").last.click()
    expect(page.get_by_role("heading", name="Slots")).to_be_visible()


def test_messages_and_shared_texts_reach_the_pool(look: Any, operated: Operated) -> None:
    server = operated.server
    page = look(server, "pool").page
    page.get_by_role("button", name="Messages of").first.click()
    panel = page.get_by_role("dialog")
    panel.get_by_label("New message").fill("Leave the header alone.")
    panel.get_by_role("button", name="Send").click()
    expect(panel.locator(".box")).to_contain_text("Leave the header alone.")
    assert barriers(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Message to all").click()
    panel.get_by_label("New message").fill("We close at four.")
    panel.get_by_role("button", name="Send").click()
    expect(panel.get_by_role("status")).to_contain_text("Sent to slot-")
    page.keyboard.press("Escape")
    shared = page.get_by_role("region", name="Shared context")
    page.get_by_role("button", name="Add a text").click()
    shared.get_by_label("Name").fill("rules")
    shared.get_by_label("Text").fill("Short <b>sentences</b>.")
    assert barriers(page) == []
    shared.get_by_role("button", name="Save").click()
    expect(shared.locator(".text")).to_have_text("Short <b>sentences</b>.")
    assert server.get("/api/pool/context").json["context"] == {"rules": "Short <b>sentences</b>."}
    shared.get_by_role("button", name="Delete").click()
    shared.get_by_role("button", name="Really delete?").click()
    expect(shared.locator(".text")).to_have_count(0)


def test_money_is_what_the_server_counts(look: Any, operated: Operated) -> None:
    costs = operated.server.get("/api/costs").json
    page = look(operated.server, "money").page
    expect(page.get_by_role("region", name="In all").get_by_role("img").last).to_have_attribute(
        "aria-label", re.compile(rf"^Spent by day: {re.escape(dollars(costs))} from \d+ \w+ 20\d\d to \d+ \w+ 20\d\d$")
    )
    today = page.get_by_role("region", name="Budgets").get_by_role("listitem").filter(has_text="All runs, today")
    expect(today.locator("[title]").first).to_have_attribute("title", dollars(costs["days"][-1]))
    expect(today).to_contain_text("of $20.00")
    paid = [one for one in costs["agents"] if spent(one) > 0]
    rows = page.get_by_role("region", name="By agent").get_by_role("row")
    expect(rows).to_have_count(len(paid) + 1)
    for place, one in enumerate(paid, start=1):
        expect(rows.nth(place)).to_contain_text(one["agent"])
        expect(rows.nth(place).locator("[title]").first).to_have_attribute("title", dollars(one))
        assert re.search(r"\d\.\d{6}", rows.nth(place).inner_text()) is None  # what is shown is short
    page.get_by_role("region", name="By run").get_by_role("link", name="paid").click()
    expect(page.get_by_role("heading", name="paid")).to_be_visible()


def test_what_deleted_runs_have_cost_stands_below_the_rows_that_lack_it(look: Any, operated: Operated) -> None:
    seen = look(operated.server, "pool")
    costs = {"unlisted_by_agent_usd": 0.07, "unlisted_by_run_usd": 0.08}
    seen.page.route("**/api/costs?**", lambda route: route.fulfill(json=route.fetch().json() | costs))
    seen.page.route("**/api/pool", lambda route: route.fulfill(json=route.fetch().json() | {"unlisted_usd": 0.09}))
    seen.go("money")
    expect(seen.page.get_by_role("region", name="By agent").locator(".foot")).to_contain_text("$0.07 more: calls of")
    expect(seen.page.get_by_role("region", name="By run").locator(".foot")).to_contain_text(
        "$0.08 more: runs that were"
    )
    seen.go("pool")
    expect(seen.page.locator(".facts", has_text="Cost")).to_contain_text("$0.09 of it by no task of a slot")


def test_a_trend_shows_rates_and_the_baseline(look: Any, operated: Operated) -> None:
    page = look(operated.server, "runs/night-11").page
    page.locator(".run-head").get_by_role("link", name="Trend").click()
    expect(page.get_by_label("Runs called")).to_have_value("nightly")
    chart = page.get_by_role("img", name="Pass rate over 12 runs: careful from 95% to 95%; hasty from 100% to 50%")
    expect(chart.locator("circle")).to_have_count(24)
    expect(chart.locator(".baseline")).to_have_count(1)
    rows = page.get_by_role("region", name="Runs").get_by_role("row")
    expect(rows).to_have_count(13)
    expect(rows.nth(1)).to_contain_text("50% of 20 30% to 70%")
    expect(rows.nth(10)).to_contain_text("baseline main")
    page.get_by_label("Runs called").select_option("paid")
    expect(page.get_by_role("img", name="Pass rate over 1 run:")).to_be_visible()
    page.go_back()
    rows.nth(1).get_by_role("link", name="Compare with the baseline").click()
    expect(page.get_by_label("Verdict")).to_be_visible()


@pytest.mark.parametrize("place", first_of(PLACES, 3))
def test_no_view_has_a_serious_barrier_and_all_fit_a_phone(look: Any, operated: Operated, place: str) -> None:
    page = look(operated.server, operated.places[place]).page
    settled(page)
    assert barriers(page) == []
    assert_fits_a_phone(page)


def test_what_one_can_do_is_reached_with_the_keyboard(look: Any, operated: Operated) -> None:
    page = look(operated.server, "batches").page
    expect(page.get_by_role("link", name=operated.waiting)).to_be_visible()
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Enter")
    tab_to(page, operated.waiting)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=operated.waiting)).to_be_visible()
    tab_to(page, "Cancel")
    page.get_by_role("link", name="Pool", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Slots")).to_be_visible()
    for name in ("Drain", "Add one", "Messages", "Add a text"):
        tab_to(page, name)


def tab_to(page: Page, words: str) -> None:
    """Press the tab key until something with these words has the focus."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").startswith(words):
            return
    raise AssertionError(f"{words} cannot be reached")


def test_a_batch_is_canceled(look: Any, operated: Operated) -> None:
    page = look(operated.server, f"batches/{operated.waiting}").page
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Really cancel?").click()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    assert operated.server.get(f"/api/batches/{operated.waiting}").json["cancel_requested"]


def test_a_chain_is_canceled(look: Any, operated: Operated) -> None:
    page = look(operated.server, f"runs/{operated.story}").page
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Really cancel?").click()
    expect(page.get_by_role("list", name="Steps").locator(".badge").last).to_have_text("skipped")


def test_the_pool_is_drained(look: Any, operated: Operated) -> None:
    page = look(operated.server, "pool").page
    page.get_by_role("button", name="Drain").click()
    page.get_by_role("button", name="Take no more tasks?").click()
    expect(page.get_by_role("status").filter(has_text="takes no tasks")).to_be_visible()
    operated.server.post(f"/api/tasks/{operated.task}/cancel")
    expect(page.get_by_role("region", name="Slot slot-").first).to_contain_text("stopped")


def test_empty_places_say_what_to_do_first(look: Any, tmp_path: Path) -> None:
    with Project(tmp_path).serve() as server:
        seen = look(server)
        for place, words, command in (
            ("batches", "No batch has been sent yet", "--dispatch batch"),
            ("pool", "The pool has no slots yet", "slots = 2"),
            ("money", "Nothing was spent in this time", "day_usd = 20.00"),
            ("trend", "No suite run has a name yet", "--name nightly"),
        ):
            page = seen.go(place)
            expect(page.get_by_role("heading", name=words)).to_be_visible()
            expect(page.locator(".command").filter(has_text=command)).to_be_visible()
