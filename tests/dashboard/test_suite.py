"""A suite run on the page: only what is seen is asked for, however many cases there are; agents against prompts."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import expect

import muster
from muster.settings import load_settings
from tests.api.server import Project, Server

CASES = 700


def many_cases() -> str:
    """Write a suite of which every fiftieth case fails, and one only with the prompt that says no."""
    made = [
        {
            "id": f"echo/question-{number}",
            "input": {"messages": [{"role": "user", "content": f"question {number}"}]},
            "expected": {"output": [{"kind": "contains", "value": "nothing" if number % 50 == 7 else "question"}]},
        }
        for number in range(CASES)
    ]
    return yaml.safe_dump({"schema_version": 1, "skill_or_agent": "echo", "cases": made}, sort_keys=False)


def run_suite(folder: Path, **spec: Any) -> str:
    """Run a suite in this process, in a loop of its own: that of the browser is in this thread."""

    async def work() -> str:
        settings = load_settings(folder / ".muster", folder=folder, environment={})
        async with muster.open(settings=settings) as m:
            handle = await m.start("suite", spec, concurrency=50)
            return str((await handle.wait()).id)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    folder = tmp_path_factory.mktemp("large")
    project = Project(folder)
    (folder / "many.yaml").write_text(many_cases(), encoding="utf-8")
    run = run_suite(folder, path=str(folder / "many.yaml"), agents=["sim/echo"])
    with project.serve() as server:
        yield server, run


def test_cases_of_a_large_suite_are_loaded_as_one_scrolls(look: Any, large: tuple[Server, str]) -> None:
    server, run = large
    seen = look(server, f"runs/{run}")
    page = seen.page
    foot = page.locator(".foot")
    expect(foot).to_have_text("rows loaded: 14 of 14")  # those that did not pass come first
    page.get_by_role("group", name="How they ended").get_by_role("button", name="All 700").click()
    expect(foot).to_contain_text("100 of 700")
    table = page.get_by_role("table", name="Cases")
    expect(table).to_have_attribute("aria-rowcount", "701")
    while "700 of 700" not in (told := foot.inner_text()):
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        expect(foot).not_to_have_text(told)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(table.get_by_role("button", name="echo/question-699")).to_be_visible()
    assert table.get_by_role("row").count() < 100
    assert not [url for url in seen.requests if "/report" in url]
    assert seen.diagnostics == []


def test_cases_are_searched_by_the_server_and_read_in_full(look: Any, large: tuple[Server, str]) -> None:
    server, run = large
    page = look(server, f"runs/{run}").page
    all_cases = page.get_by_role("group", name="How they ended").get_by_role("button", name="All")
    expect(all_cases).to_contain_text(re.compile(r"\d"))  # the figures are there, and nothing moves any more
    all_cases.click()
    page.get_by_label("Search cases").fill("question-65")
    expect(page.locator(".foot")).to_have_text("rows loaded: 11")  # 65 and 650 to 659
    page.get_by_role("table", name="Cases").get_by_role("button", name="echo/question-657").click()
    panel = page.get_by_role("dialog")
    expect(panel.locator(".message.assistant").first).to_contain_text("question 657")
    expect(panel.locator(".box.bad").first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_label("Search cases").fill("nobody asked this")
    expect(page.get_by_role("heading", name="No case fits these filters")).to_be_visible()


def test_agents_are_shown_against_prompts(look: Any, tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "shout.md").write_text("Shout.", encoding="utf-8")
    (tmp_path / "whisper.md").write_text("Whisper.", encoding="utf-8")
    prompts = [str(tmp_path / f"{name}.md") for name in ("shout", "whisper")]
    path = str(tmp_path / "library" / "smoke.yaml")
    run = run_suite(tmp_path, path=path, agents=["sim/echo", "sim/fail"], prompts=prompts)
    with project.serve() as server:
        page = look(server, f"runs/{run}").page
        table = page.get_by_role("region", name="Agents and prompts")
        expect(table.locator("thead th")).to_have_text(["Prompt", "sim/echo", "sim/fail"])
        expect(table.locator("tbody th")).to_have_text(["shout", "whisper"])
        expect(table.locator("tbody td strong")).to_have_text(["100%", "0%", "100%", "0%"])
        matrix = page.get_by_role("region", name="Matrix of cases and subjects")
        expect(matrix.locator(".cell")).to_have_count(4)
        page.get_by_label("Subject", exact=True).select_option("sim/echo+whisper")
        page.get_by_role("group", name="How they ended").get_by_role("button", name="All").click()
        expect(page.get_by_role("table", name="Cases").get_by_role("button")).to_have_count(1)
