"""Verifications on the page: what was found, beside the code as it was verified, and how it was checked."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.api.server import Server

from .demo import SETTINGS, Demo, agents
from .test_views import assert_fits_a_phone, barriers, settled
from .work import API_KEY, INJECTION, start_verification, verify_agents


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("verify")
    made = Demo.at(folder)
    made.project.declare(agents(folder) + verify_agents(folder), SETTINGS)
    return made


@pytest.fixture(scope="module")
def run(server: Server, demo: Demo) -> str:
    made = start_verification(server, demo.project.folder)
    server.until(made, "completed")
    # What is on disk now is not what was verified.
    (demo.project.folder / "shop" / "orders.py").write_text("nothing\n", encoding="utf-8")
    return made


def test_findings_stand_beside_the_code_as_it_was_verified(look: Any, server: Server, run: str) -> None:
    seen = look(server, f"runs/{run}")
    page = seen.page
    expect(page.get_by_label("Verdict")).to_contain_text("not passed")
    file = page.get_by_role("region", name="shop/orders.py", exact=True)
    worst = file.get_by_role("article").first
    expect(worst.locator(".badge")).to_have_text("critical")
    expect(worst).to_contain_text("lines 8 to 9 · CWE-89 · 97% sure")
    expect(worst).to_contain_text(INJECTION[-40:])  # the script tag is text
    expect(worst.locator(".marked")).to_have_count(2)
    expect(worst.locator(".marked").first).to_contain_text("8     query = f")
    expect(worst.locator(".code .no")).to_have_text([str(number) for number in range(5, 13)])
    both = file.get_by_role("article").filter(has_text="Found by auditor, proofreader")
    expect(both).to_contain_text("proofreader, medium")
    expect(both.locator(".badge")).to_have_text("high")
    assert seen.diagnostics == []


def test_findings_are_filtered_by_severity_and_the_rejected_ones_say_why(look: Any, server: Server, run: str) -> None:
    page = look(server, f"runs/{run}").page
    found = page.locator(".finding")
    expect(found).to_have_count(5)
    page.get_by_role("button", name="medium 1").click()
    expect(found).to_have_count(1)
    expect(found).to_contain_text("An empty list is divided by zero.")
    page.get_by_role("button", name="rejected 1").click()
    expect(found).to_contain_text("The line that is not there")
    expect(found).to_contain_text("Rejected:")
    expect(found).to_contain_text("The run has no copy of these lines.")


def test_how_it_was_checked_leads_to_the_calls(look: Any, server: Server, run: str) -> None:
    page = look(server, f"runs/{run}").page
    row = page.get_by_role("region", name="Wave 1").get_by_role("row", name="auditor")
    expect(row).to_contain_text("✗ critical + high == 0")
    expect(row).to_contain_text("1 of 1")
    row.get_by_text("1 call").click()
    row.get_by_role("button", name="wave/1/auditor").click()
    panel = page.get_by_role("dialog")
    expect(panel.locator(".message.assistant")).to_contain_text("CWE-89")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_secrets_of_the_code_are_never_shown(look: Any, server: Server, run: str) -> None:
    page = look(server, f"runs/{run}").page
    expect(page.get_by_role("region", name="shop/keys.py", exact=True).locator(".marked")).to_contain_text("redacted")
    assert API_KEY not in page.content()
    assert API_KEY not in server.get(f"/api/verify/{run}/findings").body.decode()


def test_a_verification_without_files_to_verify_says_so(look: Any, server: Server, run: str) -> None:
    assert server.get("/api/verify/nothing/status").status == 404
    other = server.ask("hello")
    assert server.get(f"/api/verify/{other}/findings").status == 400
    for query in ("after=x", "severity=none", "limit=0"):
        assert server.get(f"/api/verify/{run}/findings?{query}").status == 400


def test_pages_of_findings_have_each_of_them_once(server: Server, run: str) -> None:
    whole = server.get(f"/api/verify/{run}/findings").json
    assert (len(whole["findings"]), whole["total"], whole["next"]) == (5, 5, None)
    found, after = [], ""
    for _ in range(3):
        page = server.get(f"/api/verify/{run}/findings?limit=2{after}").json
        found += page["findings"]
        after = f"&after={page['next']}"
    assert found == whole["findings"]
    assert page["next"] is None


def test_no_verification_has_a_serious_barrier_and_it_fits_a_phone_and_the_keyboard(
    look: Any, server: Server, run: str
) -> None:
    page = look(server, f"runs/{run}").page
    expect(page.locator(".finding")).to_have_count(5)
    settled(page)
    assert barriers(page) == []
    assert_fits_a_phone(page)
    page.get_by_role("button", name="all 5").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".finding")).to_have_count(1)
