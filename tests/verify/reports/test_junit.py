"""JUnit XML: one case for each threshold of each agent, and never green by accident."""

from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element

from muster.domain.run import RunState
from muster.text.thresholds import ThresholdResult
from muster.verify.findings.journal import Ending
from tests.suites.reports.xsd import Schema
from tests.verify.reports.house import Story, agent, bad, good, hostile, model, wave, written

SCHEMA = Schema(Path(__file__).parents[2] / "suites" / "reports" / "junit.xsd")


async def junit(tmp_path: Path, story: Story) -> Element:
    return SCHEMA.validate(await written(tmp_path, story, "junit"))


def ends(root: Element) -> dict[tuple[str, str], str]:
    tags = ("failure", "error", "skipped")
    return {
        (case.attrib["classname"], case.attrib["name"]): next((one.tag for one in case if one.tag in tags), "")
        for case in root.iter("testcase")
    }


async def test_every_threshold_of_every_agent_is_a_test_case(tmp_path: Path) -> None:
    root = await junit(tmp_path, bad())
    assert ends(root) == {
        ("auditor", "looked at every file"): "",
        ("auditor", "high == 0"): "failure",
        ("enforcer", "looked at every file"): "",
        ("enforcer", "high == 0"): "",
        ("reviewer", "looked at every file"): "skipped",
        ("muster", "everything was verified and passed"): "failure",
    }
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("6", "2", "0")
    said = next(root.iter("system-out")).text or ""
    assert said.splitlines()[0] == "src/a.py:5: critical: the name is run by a shell"
    assert "rejected, line 99 is not in the file: src/a.py:99" in said


async def test_a_success_has_no_failure(tmp_path: Path) -> None:
    root = await junit(tmp_path, good())
    assert set(ends(root).values()) == {""}
    assert (root.attrib["tests"], root.attrib["failures"], root.attrib["errors"]) == ("7", "0", "0")


async def test_an_agent_without_a_report_is_an_error_and_one_without_files_is_skipped(tmp_path: Path) -> None:
    agents = [agent("a", 1, Ending.BROKEN, thresholds=()), agent("b", 1, Ending.IDLE, thresholds=()), agent("c")]
    root = await junit(tmp_path, Story(verifiers=[model(name) for name in "abcd"], waves=[wave(1, *agents)]))
    found = ends(root)
    assert (found["a", "looked at every file"], found["b", "looked at every file"]) == ("error", "skipped")
    assert (found["c", "looked at every file"], found["d", "looked at every file"]) == ("", "error")


async def test_a_run_that_stopped_is_red_although_all_that_was_done_passed(tmp_path: Path) -> None:
    root = await junit(tmp_path, replace(good(state=RunState.CANCELED), waves=good().waves[:1]))
    assert ends(root)["muster", "everything was verified and passed"] == "failure"
    assert "wave 2 was not done." in (next(root.iter("failure")).text or "")


async def test_a_threshold_over_all_is_a_case_that_is_open_until_its_wave_failed(tmp_path: Path) -> None:
    held = (
        ThresholdResult(expression="total < 3", holds=True),
        ThresholdResult(expression="coverage > 80", holds=False, why="not known"),
    )
    waves = [wave(1, agent("a"), thresholds=held), wave(2, agent("b", 2), passed=False, thresholds=held)]
    root = await junit(tmp_path, Story(verifiers=[model("a"), model("b", 2)], waves=waves))
    first, second = list(root.iter("testsuite"))[:2]
    assert ends(first).get(("all agents", "coverage > 80")) is None
    assert ends(second)["all agents", "coverage > 80"] == "failure"
    assert ends(second)["all agents", "total < 3"] == ""


async def test_texts_of_strangers_stay_texts(tmp_path: Path) -> None:
    root = await junit(tmp_path, hostile())
    said = "".join(one.text or "" for one in root.iter("system-out"))
    assert "<script>boom()</script>" in said
    assert "\\x1b[31mred" in said
