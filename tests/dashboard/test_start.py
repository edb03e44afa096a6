"""Forms that start work: made from what the server says of its requests; what it says of a field is shown there."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.api.server import Server

from .conftest import Seen


def test_a_council_is_asked(look: Any, server: Server) -> None:
    seen: Seen = look(server, "start/council")
    page = seen.page
    page.get_by_label("Question", exact=True).fill("Lamps or candles?")
    choose_members(page, "careful", "hasty")
    page.get_by_label("Rounds", exact=True).fill("1")
    page.locator("summary").filter(has_text="Run").click()
    page.get_by_label("Name", exact=True).fill("light")
    page.get_by_role("button", name="Ask the council").click()
    expect(page.get_by_role("heading", name="light")).to_be_visible()
    trace = server.get("/api/councils/light/trace").json
    assert [one["name"] for one in trace["members"]] == ["careful", "hasty"]


def choose_members(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_role("group", name="Agents").get_by_role("checkbox", name=name).check()


def test_a_scale_test_is_started(look: Any, server: Server) -> None:
    page = look(server, "start/scale").page
    page.get_by_label("Agent", exact=True).select_option("clerk")
    page.get_by_label("Counterpart").select_option("guest")
    page.get_by_label("Goal", exact=True).fill("A table for two is booked")
    page.locator("summary").filter(has_text="Judging").click()
    page.get_by_label("Judge", exact=True).select_option("referee")
    page.get_by_label("Runs", exact=True).fill("2")
    page.get_by_role("button", name="Start the scale test").click()
    expect(page.locator(".run-head")).to_contain_text("scale")
    run = page.url.rpartition("/")[2]
    server.until(run, "completed")
    assert server.get(f"/api/scale/{run}/status").json["counts"]["goal"] == 2


def test_values_of_any_kind_are_sent_as_what_they_are(look: Any, server: Server) -> None:
    page = look(server, "start/scale").page
    page.get_by_label("Agent", exact=True).select_option("sim/echo")
    page.get_by_label("Message limit").fill("1")
    page.get_by_label("Prompts", exact=True).fill('[{"name": "short", "text": "Be short."')
    page.get_by_role("button", name="Start the scale test").click()
    expect(field_of(page, "prompts").get_by_role("alert")).to_contain_text("Is not JSON")
    page.get_by_label("Prompts", exact=True).fill('[{"name": "short", "text": "Be short."}]')
    page.get_by_label("Revision", exact=True).uncheck()
    page.locator("summary").filter(has_text="Run").click()
    page.get_by_label("Run tags").fill("first\nsecond one")
    page.get_by_role("button", name="Start the scale test").click()
    expect(page.locator(".run-head")).to_contain_text("scale")
    found = server.get(f"/api/runs/{page.url.rpartition('/')[2]}").json
    assert set(found["tags"]) >= {"first", "second one"}
    assert server.until(found["id"], "completed")


def field_of(page: Page, name: str) -> Any:
    return page.locator(".field", has=page.locator(f"#{name}"))


def test_what_the_server_says_of_a_field_stands_at_the_field(look: Any, server: Server) -> None:
    page = look(server, "start/scale").page
    page.get_by_label("Agent", exact=True).select_option("clerk")
    page.get_by_label("Runs", exact=True).fill("99")
    page.get_by_role("button", name="Start the scale test").click()
    runs = page.get_by_label("Runs", exact=True)
    expect(field_of(page, "runCount").get_by_role("alert")).to_contain_text("at most 10")
    expect(runs).to_be_focused()
    expect(runs).to_have_attribute("aria-invalid", "true")
    expect(runs).to_have_attribute("aria-describedby", "runCount-flaw runCount-hint")
    expect(page.locator(".notice")).to_have_count(0)


def test_a_field_that_is_folded_away_is_shown_when_something_is_wrong_with_it(look: Any, server: Server) -> None:
    page = look(server, "start/battle").page
    page.get_by_label("Agent", exact=True).select_option("sim/echo")
    page.get_by_label("Goal", exact=True).fill("Nobody judges this")
    expect(page.get_by_label("Judge", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Start the battle").click()
    expect(field_of(page, "judge").get_by_role("alert")).to_contain_text("a goal needs a judge", ignore_case=True)
    expect(page.get_by_label("Judge", exact=True)).to_be_focused()


def test_missing_agents_are_told_at_the_agents(look: Any, server: Server) -> None:
    seen: Seen = look(server, "start/council")
    page = seen.page
    page.get_by_label("Question", exact=True).fill("Alone?")
    choose_members(page, "careful")
    page.get_by_role("button", name="Ask the council").click()
    members = page.get_by_role("group", name="Agents")
    expect(members.get_by_role("alert")).to_contain_text("2 to 50 members, not 1")
    seen.go("start/suite")
    page.get_by_role("button", name="Start the suite").click()
    chosen = page.get_by_role("group", name="Agents")
    expect(chosen.get_by_role("alert")).to_contain_text("No agent given")
    expect(page.locator(".notice")).to_have_count(0)


def test_a_person_is_not_the_agent_that_is_chosen_at_first(look: Any, server: Server) -> None:
    seen: Seen = look(server, "start/battle")
    named = seen.page.get_by_label("Agent", exact=True)
    expect(named.get_by_role("option").last).to_have_text("me (a person)")
    assert named.input_value() != "me"


def test_what_belongs_to_no_field_stands_above_the_form(look: Any, server: Server) -> None:
    page = look(server, "start/task").page
    page.get_by_label("Prompt", exact=True).fill("Something")
    page.context.set_offline(True)
    page.get_by_role("button", name="Submit the task").click()
    expect(page.locator("form").get_by_role("alert")).to_contain_text("The server cannot be reached")


@pytest.mark.parametrize("width", [1280, 400])
def test_every_form_has_every_field_that_a_request_takes(look: Any, server: Server, width: int) -> None:
    seen: Seen = look(server, "start", viewport={"width": width, "height": 900})
    described = server.get("/openapi.json").json
    forms = [(path, one["post"]) for path, one in described["paths"].items() if "x-form" in one.get("post", {})]
    assert {post["x-form"]["kind"] for _, post in forms} >= {"chain", "verification", "question"}
    for _, post in forms:
        reference = post["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        body = described["components"]["schemas"][reference.rpartition("/")[2]]
        asked = {name for name, one in body["properties"].items() if '"x-form": "id"' not in str(one).replace("'", '"')}
        page = seen.go(f"start/{post['x-form']['kind']}")
        expect(page.get_by_role("button", name=post["x-form"]["label"])).to_be_visible()
        names = page.locator("form").evaluate("form => [...form.elements].map((one) => one.name).filter(Boolean)")
        assert set(names) == asked
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.diagnostics == []
