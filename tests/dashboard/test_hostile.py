"""What models write stays text: in every view that shows it, a script, an event handler and a javascript: link."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from muster.dashboard import POLICY
from tests.api.server import Server
from tests.variants import first_of

from .conftest import Seen
from .demo import HOSTILE, Demo, judged, scripted, start_battle, started, submit_task, verdict

SCRIPT, HANDLER, LINK = HOSTILE.splitlines()[0], HOSTILE.splitlines()[1], "[press here](javascript:alert(1))"
# A judge that writes markup as its reason and as its evidence, and an agent that writes it into files and its output.
WRITER = f"""cat > notes.html <<'END'
{HOSTILE}
END
cat notes.html
printf '\\033[31m%s\\033[0m' '<b onclick=x>red</b>' >&2
"""
SUITE = """
schema_version: 1
skill_or_agent: hostile
defaults: { evaluator: judge }
cases:
  - id: hostile/says-markup
    description: '<img src=x onerror="document.title = 1">'
    tags: [smoke]
    input:
      messages: [{ role: user, content: '<script>document.title = "broken"</script>' }]
    expected:
      output: [{ kind: contains, value: "no such text" }]
      rubric: [{ id: clear, description: "It is clear." }, { id: kind, description: "It is kind." }]
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder: Path = tmp_path_factory.mktemp("hostile")
    judge = scripted(folder, "rude", [], judged(0.1, 0.5, HOSTILE, HOSTILE))
    umpire = scripted(folder, "umpire", [], verdict("no", 0.2, HOSTILE))
    writer = f'[agents.writer]\nkind = "cli"\ncommand = ["sh", "{folder}/writer.sh"]\nbudget_usd = 0.0\n'
    made = Demo.at(folder, more=judge + umpire + writer)
    (folder / "writer.sh").write_text(WRITER, encoding="utf-8")
    (folder / "library" / "hostile.yaml").write_text(SUITE, encoding="utf-8")
    return made


def ended(server: Server, run: str, state: str = "completed") -> str:
    """Wait until a run is where it is to be, or has failed, which it must not."""
    found = server.until(run, state, "failed")
    assert found["state"] == state, found["error"]
    return run


def run_suite(server: Server, agent: str) -> str:
    run = started(server, "/api/suites/start", {"suites": ["hostile"], "agents": [agent], "judge": "rude"})
    return ended(server, run)


def run_task(server: Server) -> str:
    task = submit_task(server, HOSTILE, agent="writer")
    return ended(server, task, "waiting")


def run_battle(server: Server) -> str:
    run = start_battle(server, agentId="hostile", counterpart="hostile", messageLimit=2, goal=HOSTILE, judge="umpire")
    return ended(server, run)


def ask(server: Server) -> str:
    run = server.ask(HOSTILE, agent="hostile")
    return ended(server, run)


def person(server: Server) -> str:
    run = start_battle(server, agentId="hostile", counterpart="me", judge="umpire")
    return ended(server, run, "waiting")


@pytest.fixture(scope="module")
def runs(server: Server) -> dict[str, str]:
    made = {
        "ask": ask(server),
        "suite": run_suite(server, "hostile"),
        "other": run_suite(server, "sim/echo"),
        "battle": run_battle(server),
        "person": person(server),
        "task": run_task(server),
    }
    return made


# Where it is shown, what opens it, and how much of what the model wrote stands there.
VIEWS: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "call": ("runs/{ask}/calls", "ask", (SCRIPT, HANDLER, LINK)),
    "events": ("runs/{battle}/events", "battle.message", ("onerror", "javascript:alert(1)")),
    "timeline": ("runs/{suite}/timeline", "case/hostile/says-markup/@hostile/1/1", (SCRIPT, HANDLER, LINK)),
    "cases": ("runs/{suite}", None, ("hostile/says-markup", "no such text")),
    "case": ("runs/{suite}", "hostile/says-markup", (SCRIPT, HANDLER, LINK)),
    "battle": ("runs/{battle}", None, (SCRIPT, HANDLER, LINK)),
    "question": ("runs/{person}/calls", None, (SCRIPT, HANDLER, LINK)),
    "compare": ("compare?a={suite}&b={other}", "hostile/says-markup", (SCRIPT, HANDLER, LINK)),
    "tasks": ("tasks", None, ("<script>",)),
    "task": ("tasks/{task}", None, (SCRIPT, HANDLER, LINK)),
    "answer": ("runs/{ask}", None, (SCRIPT, HANDLER, LINK)),
    "runs": ("runs", None, ('hostile: document.title = "broken"',)),
}


@pytest.mark.parametrize("view", VIEWS)
def test_markup_stays_text(look: Any, server: Server, runs: dict[str, str], view: str) -> None:
    place, button, words = VIEWS[view]
    seen: Seen = look(server, place.format(**runs))
    page = seen.page
    if button is not None:
        page.get_by_role("button", name=button, exact=view != "case" and view != "compare").first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        expect(page.get_by_role("dialog").locator(".loading")).to_have_count(0)
    for text in words:
        expect(page.locator("body")).to_contain_text(text)
    assert made_of_it(page) == []
    assert "broken" not in page.title()
    assert [text for text in seen.diagnostics if "404" not in text and "409" not in text] == []  # the policy tells


STRANGE = """() => {
  const kinds = "script:not([src^='/page/']), img:not([src^='/page/']), iframe, object, embed, form[action], base";
  const acts = ({ name, value }) => name.startsWith("on") || /^\\s*(javascript|data|vbscript):/i.test(value);
  const all = [...document.querySelectorAll("*")];
  const found = all.filter((one) => one.matches(kinds) || [...one.attributes].some(acts));
  return found.map((one) => one.outerHTML.slice(0, 200));
}"""


def made_of_it(page: Page) -> list[str]:
    """Return what in the document can only come from markup: scripts and pictures of strangers, handlers, addresses."""
    found: list[str] = page.evaluate(STRANGE)
    return found


ZALGO = "a" + "\u0300" * 400
DEEP = {
    "quotations": ">" * 4000 + " deep",
    "spaced quotations": "> " * 2000 + "deep",
    "lists": "- " * 2000 + "deep",
    "indented lists": "\n".join("  " * depth + "- deep" for depth in range(300)),
    "emphasis": "deep " + "*a **a " * 500,
    "marks": f"deep {ZALGO}",
}


@pytest.mark.parametrize("name", first_of(DEEP, 3))
def test_a_text_that_is_nested_without_end_is_shown_and_breaks_nothing(look: Any, server: Server, name: str) -> None:
    run = ended(server, server.ask(DEEP[name], agent="sim/echo"))
    seen: Seen = look(server, f"runs/{run}")
    expect(seen.page.locator(".message.assistant > .said")).to_contain_text("deep")
    assert "\u0300" * 5 not in seen.page.locator("body").inner_text()
    deepest = "() => Math.max(0, ...[...document.querySelectorAll('.said blockquote, .said li')].map(depth)) "
    depth = "const depth = (one) => (one.closest('.said') ? 1 + depth(one.parentElement) : 0);"
    assert seen.page.evaluate(f"() => {{ {depth} return ({deepest})(); }}") <= 30
    seen.page.get_by_role("link", name="Runs", exact=True).first.click()
    expect(seen.page.get_by_role("heading", name="Runs")).to_be_visible()
    assert seen.diagnostics == []


def test_a_part_that_cannot_be_shown_leaves_the_others_as_they_are(look: Any, server: Server) -> None:
    run = ended(server, server.ask("hello", agent="sim/echo"))
    seen: Seen = look(server, f"runs/{run}/calls")
    expect(seen.page.get_by_role("table", name="Calls")).to_be_visible()
    seen.page.route("**/attempts?**", lambda route: route.fulfill(json={"calls": [{"key": "ask"}], "next": None}))
    seen.page.get_by_role("link", name="Timeline").click()
    expect(seen.page.get_by_role("alert")).to_contain_text("This part could not be shown")
    expect(seen.page.get_by_role("heading", level=1)).to_be_visible()
    seen.page.get_by_role("link", name="Events").click()
    expect(seen.page.get_by_role("alert")).to_have_count(0)
    expect(seen.page.get_by_role("table", name="Events")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/page/app.js", "/page/nothing.js"])
def test_nothing_may_run_that_the_server_did_not_send(server: Server, path: str) -> None:
    answer = server.get(path)
    if answer.status == 200:
        assert answer.headers["content-security-policy"] == POLICY
    directives = dict(part.strip().partition(" ")[::2] for part in POLICY.split(";"))
    assert (directives["default-src"], directives["script-src"], directives["frame-ancestors"]) == (
        "'none'",
        "'self'",
        "'none'",
    )


def test_a_script_that_got_into_the_document_would_not_run(look: Any, server: Server) -> None:
    seen: Seen = look(server)
    expect(seen.page.get_by_role("heading", name="Runs")).to_be_visible()
    seen.page.evaluate(
        """() => {
          const script = Object.assign(document.createElement("script"), { textContent: "document.title = 'broken'" });
          document.body.append(script);
          const image = document.createElement("img");
          image.setAttribute("onerror", "document.title = 'broken'");
          image.src = "/page/nothing.png";
          document.body.append(image);
        }"""
    )
    expect(seen.page.locator("img[onerror]")).to_have_count(1)
    assert seen.page.title() == "Runs · Muster"
    assert sum("Content Security Policy" in text for text in seen.diagnostics) >= 2
