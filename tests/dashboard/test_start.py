"""Forms that start work: what they send is started, and what the server says is shown where it belongs."""

from typing import Any

from playwright.sync_api import expect

from tests.api.server import Server

from .conftest import Seen


def test_a_council_is_asked(look: Any, server: Server) -> None:
    seen: Seen = look(server, "start/council")
    page = seen.page
    page.get_by_label("Question").fill("Lamps or candles?")
    page.get_by_role("checkbox", name="careful").check()
    page.get_by_role("checkbox", name="hasty").check()
    page.get_by_label("Most rounds").fill("1")
    page.get_by_label("Name", exact=True).fill("light")
    page.get_by_role("button", name="Ask the council").click()
    expect(page.get_by_role("heading", name="light")).to_be_visible()
    trace = server.get("/api/councils/light/trace").json
    assert [one["name"] for one in trace["members"]] == ["careful", "hasty"]


def test_a_scale_test_is_started(look: Any, server: Server) -> None:
    page = look(server, "start/scale").page
    page.get_by_label("Agent under test", exact=True).select_option("clerk")
    page.get_by_label("Counterpart").select_option("guest")
    page.get_by_label("Goal", exact=True).fill("A table for two is booked")
    page.get_by_label("Judge").select_option("referee")
    page.get_by_label("Battles").fill("2")
    page.get_by_role("button", name="Start the scale test").click()
    expect(page.locator(".run-head")).to_contain_text("scale")
    run = page.url.rpartition("/")[2]
    server.until(run, "completed")
    assert server.get(f"/api/scale/{run}/status").json["counts"]["goal"] == 2


def test_what_the_server_says_of_a_field_stands_at_the_field(look: Any, server: Server) -> None:
    page = look(server, "start/scale").page
    page.get_by_label("Agent under test", exact=True).select_option("clerk")
    page.get_by_label("Battles").fill("99")
    page.get_by_role("button", name="Start the scale test").click()
    field = page.locator(".field", has=page.locator("#runCount"))
    expect(field.get_by_role("alert")).to_contain_text("at most 10")
    expect(page.get_by_label("Battles")).to_be_focused()
    expect(page.get_by_label("Battles")).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".notice")).to_have_count(0)


def test_missing_agents_are_told_at_the_agents(look: Any, server: Server) -> None:
    seen: Seen = look(server, "start/council")
    page = seen.page
    page.get_by_label("Question").fill("Alone?")
    page.get_by_role("checkbox", name="careful").check()
    page.get_by_role("button", name="Ask the council").click()
    members = page.get_by_role("group", name="Members")
    expect(members.get_by_role("alert")).to_contain_text("2 to 50 members, not 1")
    seen.go("start/suite")
    page.get_by_role("button", name="Start the suite").click()
    chosen = page.get_by_role("group", name="Agents")
    expect(chosen.get_by_role("alert")).to_contain_text("Choose at least one agent.")
    expect(page.locator(".notice")).to_have_count(0)


def test_a_person_is_not_the_agent_that_is_chosen_at_first(look: Any, server: Server) -> None:
    seen: Seen = look(server, "start/battle")
    named = seen.page.get_by_label("Agent under test", exact=True)
    expect(named.get_by_role("option").last).to_have_text("me (a person)")
    assert named.input_value() != "me"


def test_what_belongs_to_no_field_stands_below_the_form(look: Any, server: Server) -> None:
    page = look(server, "start/task").page
    page.get_by_label("What is to be done").fill("Something")
    page.context.set_offline(True)
    page.get_by_role("button", name="Submit the task").click()
    expect(page.locator("form").get_by_role("alert")).to_contain_text("The server cannot be reached")
