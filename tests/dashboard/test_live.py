"""What happens while somebody looks: battles turn by turn, runs that go on, streams that break, lists without end."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.served import ServedStore
from tests.api.server import Project, Server

from .demo import Demo, dollars, start_battle, start_suite, started


def test_an_empty_store_says_what_to_do_first(look: Any, tmp_path: Path) -> None:
    with Project(tmp_path).serve() as server:
        seen = look(server)
        expect(seen.page.get_by_role("heading", name="Nothing has been run yet")).to_be_visible()
        expect(seen.page.locator(".command")).to_have_text('muster ask sim/echo "hello"')
        for place, words in (("tasks", "No task has been submitted yet"), ("compare", "There are no suite runs")):
            expect(seen.go(place).get_by_role("heading", name=words)).to_be_visible()
        run = server.ask("hello", name="first")
        expect(seen.go("runs").get_by_role("link", name="first")).to_be_visible()
        server.until(run, "completed")
        expect(seen.page.get_by_role("row", name="first")).to_contain_text("completed")


def test_a_battle_is_started_and_its_turns_arrive(look: Any, server: Server) -> None:
    seen = look(server, "start/battle")
    page = seen.page
    page.get_by_label("Agent", exact=True).select_option("clerk")
    page.get_by_label("Counterpart").select_option("me")
    page.get_by_label("Goal", exact=True).fill("A table for two is booked")
    page.locator("summary").filter(has_text="Judging").click()
    page.get_by_label("Judge", exact=True).select_option("referee")
    page.get_by_role("button", name="Start the battle").click()
    said = page.locator(".battle .talk > .message")
    decided = page.locator(".decision")
    expect(said).to_have_count(2)
    expect(decided).to_have_count(1)
    expect(decided).to_contain_text("Nothing is booked yet")
    for turn, words in enumerate(("For two, please.", "At eight."), start=2):
        page.get_by_label("Answer as me").fill(words)
        page.get_by_role("button", name="Send the answer").click()
        expect(said).to_have_count(2 * turn)
    expect(page.get_by_label("Outcome")).to_contain_text("The goal is reached after 3 replies of clerk.")
    expect(decided).to_have_count(4)  # the last one is confirmed
    expect(decided.last).to_contain_text("94%")
    assert seen.diagnostics == []


def test_a_reload_in_mid_battle_shows_every_turn_once_and_goes_on(look: Any, server: Server) -> None:
    run = start_battle(server, counterpart="me")
    page = look(server, f"runs/{run}").page
    said = page.locator(".battle .talk > .message")
    expect(said).to_have_count(2)
    before = said.all_inner_texts()
    page.reload()
    expect(said).to_have_text(before, use_inner_text=True)
    expect(page.locator(".decision")).to_have_count(1)
    page.get_by_label("Answer as me").fill("For two, please.")
    page.get_by_role("button", name="Send the answer").click()
    page.reload()  # while the reply is written
    expect(said).to_have_count(4)
    assert said.all_inner_texts()[:2] == before
    stored = server.get(f"/api/battles/{run}/messages").json["messages"]
    assert len(stored) == 4


def test_a_run_whose_budget_is_spent_goes_on_with_a_new_one(look: Any, server: Server) -> None:
    run = started(server, "/api/ask", {"agent": "careful", "prompt": "hello", "budget_usd": 0.000001})
    server.until(run, "failed")
    page = look(server, f"runs/{run}").page
    expect(page.locator(".notice li").first).to_contain_text("enter a higher total above and press Resume")
    expect(page.locator(".notice")).to_contain_text(f"raise the budget: muster runs resume {run} --budget TOTAL")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Enter a new total in dollars")).to_be_visible()
    page.get_by_label("New total budget in $").fill("1")
    page.get_by_role("button", name="Resume").click()
    expect(page).not_to_have_url(f"{server.url}/#/runs/{run}")
    resumed = page.url.rpartition("/")[2]
    assert server.until(resumed, "completed")["budget_usd"] == 1


def test_a_resumed_suite_shows_all_its_cases_and_what_the_whole_work_has_cost(look: Any, tmp_path: Path) -> None:
    with Demo.at(tmp_path, cases=150).project.serve() as server:
        run = start_suite(server, "careful", name="in-two-parts", budget_usd=0.05)
        server.until(run, "failed")
        again = server.post(f"/api/runs/{run}/resume", {"budget_usd": 0.10}).json["id"]
        found = server.until(again, "failed")
        assert found["lineage"]["spent_usd"] > found["spent_usd"] > 0
        counts = server.get(f"/api/suites/{again}/summary").json["counts"]
        assert sum(counts.values()) == 150  # also of the cases that neither run came to
        page = look(server, f"runs/{again}").page
        facts = page.locator(".run-head .facts > div")
        whole = facts.filter(has_text="Cost, of budget")
        expect(whole).to_contain_text("in all of $0.10")
        told = f"{dollars(found['lineage'])} in all, {dollars(found)} of it by this run"
        expect(whole.locator("[title]").first).to_have_attribute("title", told)
        expect(facts.filter(has_text="Cost of this run").locator("[title]")).to_have_attribute("title", dollars(found))
        expect(page.get_by_role("button", name="All 150")).to_be_visible()


def test_a_battle_that_cannot_be_started_says_why(look: Any, server: Server) -> None:
    seen = look(server, "start/battle")
    seen.page.get_by_label("Agent", exact=True).select_option("sim/echo")
    seen.page.get_by_label("Goal", exact=True).fill("Nobody judges this")
    seen.page.get_by_role("button", name="Start the battle").click()
    expect(seen.page.get_by_role("alert")).to_contain_text("judge")


def test_a_battle_is_canceled(look: Any, server: Server) -> None:
    run = start_battle(server, counterpart="me")
    page = look(server, f"runs/{run}").page
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Really cancel?").click()
    expect(page.locator(".run-head")).to_contain_text("canceled")
    expect(page.get_by_label("Outcome")).to_contain_text("canceled by a person")
    assert server.get(f"/api/runs/{run}").json["state"] == "canceled"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStore]:
    made = ServedStore(tmp_path_factory.mktemp("store"))
    workloads = made.folder / "served_workloads.py"
    workloads.write_text(workloads.read_text() + MANY, encoding="utf-8")
    made.start()
    yield made
    made.kill()


MANY = """

@muster.workload("many")
async def many(ctx, spec):
    async def one(number, text):
        return (await ctx.call("sim/echo", text, key=f"call/{number:06}")).text
    return {"answers": len([text async for text in ctx.map(one, [str(n) for n in range(spec["calls"])])])}


@muster.workload("steps")
async def steps(ctx, spec):
    for number in range(spec["count"]):
        await ctx.receive(f"go/{number}", "go")
        await ctx.emit(f"step/{number}", "step", {"n": number})
"""


class Opened:
    """A served store as the page's helpers know servers."""

    def __init__(self, store: ServedStore) -> None:
        self.url = store.url


def in_thread(work: Any) -> Any:
    """Do something with the store in a loop of its own: that of the browser is in this thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work)).result()


def listed(page: Page) -> list[str]:
    return page.get_by_role("table", name="Events").locator(".line").all_inner_texts()


def test_a_reload_and_a_killed_server_lose_no_event(look: Any, store: ServedStore) -> None:
    run = in_thread(store.submit("steps", {"count": 4}))
    page = look(Opened(store), f"runs/{run}/events").page
    steps = page.get_by_role("table", name="Events").get_by_role("button", name="step", exact=True)
    in_thread(store.send(run, "go"))
    expect(steps).to_have_count(1)
    page.reload()
    expect(steps).to_have_count(1)
    in_thread(store.send(run, "go"))
    expect(steps).to_have_count(2)
    store.kill()
    expect(page.get_by_role("status", name="not connected").or_(page.locator(".lamp.is-lost"))).to_be_visible()
    store.start()
    in_thread(store.send(run, "go"))
    in_thread(store.send(run, "go"))
    expect(steps).to_have_count(4)
    expect(page.locator(".run-head")).to_contain_text("completed")
    assert [text for text in listed(page) if text.startswith("n:")] == ["n: 3", "n: 2", "n: 1", "n: 0"]


def test_a_server_that_is_gone_is_noticed_and_what_could_not_be_loaded_comes_when_it_is_back(
    look: Any, store: ServedStore
) -> None:
    run = in_thread(store.submit("many", {"calls": 3}))
    other = in_thread(store.submit("many", {"calls": 3}))
    seen = look(Opened(store), f"runs/{run}/calls")
    page, lamp = seen.page, seen.page.locator(".lamp")
    expect(page.locator(".run-head")).to_contain_text("completed")
    store.kill()
    expect(lamp).to_have_text("not connected")  # though nothing is asked for any more
    seen.go(f"runs/{other}/calls")
    expect(page.get_by_role("alert").first).to_contain_text("cannot be reached")
    store.start()
    expect(lamp).to_have_text("connected")
    expect(page.locator(".run-head")).to_contain_text(other)
    expect(page.get_by_role("table", name="Calls").get_by_role("button")).to_have_count(3)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_long_list_holds_only_the_rows_that_are_seen(look: Any, store: ServedStore) -> None:
    run = in_thread(store.submit("many", {"calls": 1500}))
    page = look(Opened(store), f"runs/{run}/calls").page
    expect(page.locator(".run-head")).to_contain_text("completed", timeout=60_000)
    table = page.get_by_role("table", name="Calls")
    expect(table).to_have_attribute("aria-rowcount", "1501")
    expect(table.get_by_role("button", name="call/000000")).to_be_visible()
    expect(table.locator(".badge", has_text="open")).to_have_count(0)  # what was open when it was loaded is not so now
    foot = page.locator(".foot")
    while "1,500 of 1,500" not in (told := foot.inner_text()):
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        expect(foot).not_to_have_text(told)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(table.get_by_role("button", name="call/001499")).to_be_visible()
    assert table.get_by_role("row").count() < 100
