"""The files of the page: what they weigh, what they are sent with, and who may have them."""

import gzip
import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from muster.dashboard import ASSETS, KEPT, POLICY, SERVED
from tests.api.server import ADMIN, CI, TOKENS, Project, Server

from .conftest import Seen

MAX_PACKED_BYTES, MAX_BYTES = 145_000, 385_000  # of all views together: as they are sent, and unpacked
MAX_FIRST_BYTES = 51_000  # of what is sent, packed, before the list of runs is seen


def test_the_page_weighs_little() -> None:
    assert sum(len(asset.packed) for asset in ASSETS.values()) <= MAX_PACKED_BYTES
    assert sum(len(asset.body) for asset in ASSETS.values()) <= MAX_BYTES


def test_the_first_view_is_a_few_kilobytes_on_the_wire(look: Any, server: Server) -> None:
    seen: Seen = look(server)
    expect(seen.page.locator("main h1")).to_have_text("Runs")
    asked = [url.removeprefix(server.url) for url in seen.requests if "/api/" not in url]
    sent = sum(len(SERVED[path.partition("#")[0]].packed) for path in asked if path != "/favicon.ico")
    assert 10_000 < sent <= MAX_FIRST_BYTES


def test_files_are_packed_for_those_who_take_them_so(server: Server) -> None:
    plain = server.get("/page/app.js")
    packed = server.request("GET", "/page/app.js", headers={"accept-encoding": "br, gzip"})
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "accept-encoding")
    assert gzip.decompress(packed.body) == plain.body


def test_nothing_but_its_own_files_may_run_or_be_asked_for(server: Server) -> None:
    for path in ("/", "/page/app.js", "/page/page.css"):
        answer = server.get(path)
        assert (answer.status, answer.headers["content-security-policy"]) == (200, POLICY)
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY
    document = ASSETS["/"].body.decode()
    assert re.findall(r"<script(?![^>]*src=)|<style|\son\w+=|style=", document) == []
    for path, asset in ASSETS.items():
        assert re.findall(rb"https?://(?!www\.w3\.org|127\.0\.0\.1)", asset.body) == [] or "/lib/" in path


def test_what_stands_under_its_version_is_kept_for_ever_and_the_document_is_asked_for_again(server: Server) -> None:
    document = server.get("/")
    assert document.headers["cache-control"] == "no-cache"
    named = re.findall(r'(?:href|src)="(.+?)"', document.body.decode())
    assert len({path.split("/")[2] for path in named}) == 1  # the version
    for path in named:
        answer = server.get(path)
        assert (answer.status, answer.headers["cache-control"]) == (200, KEPT)
        assert answer.body == server.get("/page/" + path.split("/", 3)[3]).body
    assert server.get("/page/0123456789ab/app.js").status == 404  # of another version


def test_every_module_of_the_first_view_is_preloaded_and_nothing_is_asked_for_twice(look: Any, server: Server) -> None:
    run = server.ask("hello")
    server.until(run, "completed")
    seen: Seen = look(server, f"runs/{run}/calls")
    expect(seen.page.get_by_role("button", name="ask", exact=True)).to_be_visible()
    asked = [url.removeprefix(server.url) for url in seen.requests]
    for path in (f"/api/runs/{run}", f"/api/runs/{run}/calls?limit=200"):
        assert asked.count(path) == 1
    modules = [path for path in asked if path.endswith(("js", "mjs"))]
    preloaded = set(re.findall(r'modulepreload" href="(.+?)"', ASSETS["/"].body.decode()))
    assert set(modules) == preloaded
    assert len(modules) == len(preloaded)


def test_what_the_browser_has_is_not_sent_again(server: Server) -> None:
    first = server.get("/page/app.js")
    again = server.request("GET", "/page/app.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("path", ["/page/nothing.js", "/page/../muster.toml", "/page/%2e%2e/__init__.py", "/page/"])
def test_there_are_no_other_files(server: Server, path: str) -> None:
    assert server.get(path).status == 404


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("locked"))
    project.declare(TOKENS)
    return project


def test_with_tokens_the_page_is_sent_and_what_it_shows_is_not(locked: Project) -> None:
    with locked.serve() as server:
        assert server.get("/").status == 200
        for path in ("/api/runs", "/page/nothing.js", "/page", "/openapi.json"):
            assert server.get(path).status == 401
        assert server.request("POST", "/").status == 405


def test_a_token_is_entered_once_and_kept_in_the_tab(look: Any, locked: Project) -> None:
    with locked.serve() as server:
        run = server.with_token(CI).ask("hello", name="of-ci")
        server.with_token(ADMIN).until(run, "completed")
        seen: Seen = look(server)
        page = seen.page
        expect(page.get_by_role("heading", name="This server needs a token")).to_be_visible()
        page.get_by_label("Token").fill("not-the-secret-at-all")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("not accepted")
        page.get_by_label("Token").fill(CI)
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("link", name="of-ci")).to_be_visible()
        page.reload()
        expect(page.get_by_role("link", name="of-ci")).to_be_visible()
        page.get_by_role("link", name="of-ci").click()
        page.get_by_role("link", name="Events").click()
        expect(page.get_by_role("button", name="run.completed")).to_be_visible()
        assert not [url for url in seen.requests if CI in url]
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Token")).to_be_visible()


def test_serve_opens_the_page_and_view_uses_the_server_that_runs(project_with_browser: tuple[Project, Path]) -> None:
    project, opened = project_with_browser
    with project.serve("--open") as server:
        assert read_opened(opened, 1) == [f"{server.url}/"]
        run = server.ask("hello", name="mine")
        server.until(run, "completed")
        with project.command("view", "mine") as process:
            out, _ = process.communicate(timeout=60)
            assert (process.returncode, out) == (0, f"the page is at {server.url}/#/runs/{run}\n")
        assert read_opened(opened, 2)[1] == f"{server.url}/#/runs/{run}"
        with project.command("view", "nothing") as process:
            process.communicate(timeout=60)
            assert process.returncode == 5
        server.process.kill()
        server.process.wait()
    with project.command("view", "mine", "--json") as process:  # the server died, so this one is started
        assert '"url": "http://127.0.0.1:' in process.stdout.readline()
        assert read_opened(opened, 3)[2].endswith(f"/#/runs/{run}")
        process.kill()


@pytest.fixture
def project_with_browser(tmp_path: Path) -> tuple[Project, Path]:
    """A project whose browser writes the address that it is to open into a pipe's place."""
    opened, script = tmp_path / "opened", tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    script.chmod(0o755)
    return Project(tmp_path, {"BROWSER": f"{script} %s"}), opened


def read_opened(opened: Path, lines: int) -> list[str]:
    """Wait until the browser was started so often."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = opened.read_text().splitlines() if opened.exists() else []
        if len(found) >= lines:
            return found
        time.sleep(0.05)
    raise AssertionError("no browser was started")
