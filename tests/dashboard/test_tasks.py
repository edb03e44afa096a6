"""Tasks on the board: submitted, looked at with their diff, rejected with feedback, approved, tried again."""

from typing import Any

from playwright.sync_api import expect

from tests.api.server import Server

from .demo import submit_task


def test_a_task_is_rejected_with_feedback_and_then_approved(look: Any, server: Server) -> None:
    seen = look(server, "start/task")
    page = seen.page
    page.get_by_label("Prompt").fill("Add the opening hours to the README.")
    page.get_by_label("Review").check()
    page.get_by_role("button", name="Submit the task").click()
    review = page.get_by_role("complementary", name="Review")
    expect(review).to_be_visible()
    diff = page.get_by_role("region", name="Diff")
    expect(diff.locator(".d-in", has_text="+Saturday from 10 to 4.")).to_be_visible()
    expect(diff.locator(".d-out")).to_have_text("-We sell lamps.")
    expect(review.get_by_role("button", name="Reject with feedback")).to_be_disabled()
    review.get_by_label("Feedback").fill("Say it in one sentence.")
    review.get_by_role("button", name="Reject with feedback").click()
    expect(page.locator(".facts", has_text="Rejected")).to_contain_text("1 ×")
    expect(diff).to_contain_text("Say it in one sentence.")
    page.get_by_role("link", name="Tasks").first.click()
    card = page.get_by_role("region", name="In review").get_by_role("link", name="Add the opening hours")
    expect(card).to_contain_text("1 × rejected")
    card.click()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".badge").first).to_have_text("completed")
    expect(review).to_have_count(0)
    page.get_by_role("link", name="Tasks").first.click()
    expect(page.get_by_role("region", name="Done").get_by_role("link")).to_have_count(1)
    assert [text for text in seen.diagnostics if "404" not in text and "409" not in text and "400" not in text] == []


def test_a_failed_task_says_why_and_is_tried_again(look: Any, server: Server) -> None:
    task = submit_task(server, "FAIL Run the tests")
    page = look(server, "tasks").page
    page.get_by_role("region", name="Not done").get_by_role("link", name="FAIL Run the tests").click()
    expect(page.get_by_role("alert")).to_contain_text("make: *** [test] Error 2")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("link", name="Calls and events")).not_to_have_attribute("href", f"#/runs/{task}")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()  # it failed again


def test_a_task_at_work_is_canceled(look: Any, server: Server) -> None:
    task = submit_task(server, "Never ends", agent="stuck")
    page = look(server, f"tasks/{task}").page
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Really cancel?").click()
    expect(page.locator(".badge").first).to_have_text("canceled")
    assert server.get(f"/api/tasks/{task}").json["state"] == "canceled"


def test_what_a_task_did_not_get_left_beside_its_branch_and_changed_elsewhere_is_shown(
    look: Any, server: Server
) -> None:
    task = submit_task(server, "FAIL Run the tests")
    seen = look(server, "tasks")
    found: dict[str, Any] = {
        "operation": "merge",
        "branch": "muster/task-1",
        "merged_into": "main",
        "beside": ["work on the branch muster/task-1-2"],
        "handed_over": [{"task": "0", "name": "api", "branch": None, "commit": None, "missing": ["inner"]}],
        "repository_changes": [{"what": "hook x", "before": None, "after": "sha256 1", "restore": "rm hooks/x"}],
        "repository_unknown": "git refused",
    }
    seen.page.route(f"**/api/tasks/{task}", lambda route: route.fulfill(json=route.fetch().json() | found))
    seen.go(f"tasks/{task}")
    expect(seen.page.locator(".facts", has_text="Branch")).to_contain_text("muster/task-1, merged into main")
    for words in (
        "There is more:work on the branch muster/task-1-2",
        "It did not get this from api, on which it depends:inner",
        "hook x: nothing became sha256 1. Restore it with: rm hooks/x",
        "is not known: git refused",
    ):
        expect(seen.page.locator(".notice", has_text=words)).to_be_visible()


def test_a_task_that_changed_the_repository_and_no_file_is_marked_on_the_board_and_not_called_nothing(
    look: Any, server: Server
) -> None:
    task = submit_task(server, "Add the opening hours to the README.")
    server.until(task, "waiting")
    changes = [{"what": "core.hooksPath", "before": None, "after": "/x", "restore": "git config --unset"}]
    found = {"repository_changes": changes, "changed": 0, "files": [], "branch": "muster/task-1"}
    seen = look(server, "tasks")
    seen.page.route("**/api/tasks?**", lambda route: route.fulfill(json=_changed(route.fetch().json(), found)))
    seen.page.route(f"**/api/tasks/{task}", lambda route: route.fulfill(json=route.fetch().json() | found))
    seen.page.route("**/diff", lambda route: route.fulfill(json=route.fetch().json() | {"diff": ""}))
    card = seen.page.locator(f".task-card[href='#/tasks/{task}']")
    expect(card).to_contain_text("0 files changed on muster/task-1")
    expect(card.locator(".badge")).to_have_text("your repository changed")
    seen.go(f"tasks/{task}")
    expect(seen.page.get_by_role("region", name="Diff")).to_contain_text("It has changed no file.")
    seen.go(f"runs/{task}")
    expect(seen.page.locator(".notice", has_text="core.hooksPath: nothing became /x")).to_be_visible()
    expect(seen.page.get_by_role("region", name="Diff")).to_contain_text("It has changed no file.")
    assert seen.page.locator("pre", has_text='"quality"').count() == 0  # the result is told in words


def _changed(answer: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    return answer | {"tasks": [one | found for one in answer["tasks"]]}
