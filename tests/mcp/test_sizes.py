"""No answer is too long, and what was cut can be read to its end by the call that the answer names."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.app.pool.values import TaskSpec
from muster.domain.errors import BadArgument
from muster.mcp.sizes import MAX_ANSWER, fit, page, pick, size, text_of_value
from tests.mcp.agents import long_text
from tests.mcp.coordinated import AGENTS, Desk, coordinated

WORDY = """
[agents.wordy]
kind = "python"
function = "tests.mcp.agents:wordy"
budget_usd = 0.10
"""
STEPS = "".join(f'  - {{ name: step-{n}, prompt: "{n}: write 6000" }}\n' for n in range(30))
CHAINS = {
    "two": 'name: two\nagent: wordy\nsteps:\n  - { name: a, prompt: "write 240000" }\n  - { name: b, prompt: "9" }\n',
    "thirty": f"name: thirty\nagent: wordy\nsteps:\n{STEPS}",
}
CUT = re.compile(r" \[… ([\d,]+) characters more: (\w+\(.*\))\]$", re.DOTALL)
DROPPED = re.compile(r"\[… ([\d,]+) more: (\w+\(.*\))\]$")

texts = st.one_of(st.text(max_size=30), st.builds(long_text, st.text(max_size=5), st.integers(1, 3000)))
names = st.one_of(
    st.sampled_from(["a/b", "~", "key", "name"]), st.text(max_size=12), st.text(min_size=90, max_size=150)
)
documents = st.recursive(
    st.one_of(texts, st.integers(-(2**53), 2**53), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=40), st.dictionaries(names, inner, max_size=12)),
    max_leaves=60,
)


def strings(value: Any) -> Iterator[str]:
    """Yield every text of an answer."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def call_in(words: str) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments of a call as an answer writes it."""
    call = ast.parse(words, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    return call.func.id, {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}


async def followed(desk: Desk, words: str) -> str:
    """Read what a call and all pages after it return."""
    tool, arguments = call_in(words)
    text, offset = "", arguments.get("offset", 0)
    while offset is not None:
        found = await desk.call(tool, **arguments | {"offset": offset})
        assert size(found) <= MAX_ANSWER
        text, offset = text + found["text"], found["next_offset"]
    return text


async def whole_text(desk: Desk, excerpt: str) -> str:
    """Return a text that was cut, with the rest of it."""
    cut = CUT.search(excerpt)
    assert cut is not None, excerpt[-300:]
    rest = await followed(desk, cut[2])
    assert len(rest) == int(cut[1].replace(",", ""))
    return excerpt[: cut.start()] + rest


async def every_cut_is_read(desk: Desk, answer: Any) -> int:
    """Follow every pointer of an answer; return how many there are."""
    assert size(answer) <= MAX_ANSWER
    cuts = [one for one in strings(answer) if CUT.search(one)]
    for one in cuts:
        await whole_text(desk, one)
    dropped = [found[2] for one in strings(answer) if (found := DROPPED.search(one))]
    for words in dropped:
        json.loads(await followed(desk, words))
    return len(cuts) + len(dropped)


@given(documents, st.integers(2_000, 20_000))
def test_any_document_fits_and_every_pointer_in_it_names_the_rest(document: Any, most: int) -> None:
    def pointer(field: str, offset: int) -> str:
        return f"read({field!r}, {offset})"

    found = fit({"id": "x", "data": document}, most, pointer)
    assert size(found) <= most
    for one in strings(found):
        cut = re.search(r" \[… ([\d,]+) characters more: read\((.*), (\d+)\)\]$", one, re.DOTALL)
        if cut is not None:
            whole = text_of_value(pick({"id": "x", "data": document}, ast.literal_eval(cut[2])))
            assert one[: cut.start()] == whole[: int(cut[3])]
            assert len(whole) - int(cut[3]) == int(cut[1].replace(",", ""))


def test_what_is_small_stays_whole_and_what_is_large_has_fair_shares() -> None:
    long = {"output": "o" * 100_000, "error": "e" * 50_000, "reason": "r" * 900, "files": ["f"] * 20}
    found = fit(long, 20_000, lambda field, offset: "read()")
    assert (found["reason"], found["files"]) == (long["reason"], long["files"])
    assert all(9_000 < len(found[name]) < 10_000 for name in ("output", "error"))


def test_a_field_that_is_not_there_is_refused() -> None:
    for field in ("/no", "/list/7", "/text/0", "/list/x", "list", "list/0", "/"):
        with pytest.raises(BadArgument, match="not a field"):
            pick({"list": [1], "text": "x"}, field)


def test_a_page_of_escaped_characters_is_shorter() -> None:
    text, read = "\x1b" * 50_000, ""
    found: dict[str, Any] = {"next_offset": 0}
    while found["next_offset"] is not None:
        found = page(text, found["next_offset"])
        assert size(found) <= MAX_ANSWER
        read += found["text"]
    assert read == text


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for name, text in CHAINS.items():
        (tmp_path / "library" / name).mkdir(parents=True)
        (tmp_path / "library" / name / "chain.yaml").write_text(text)
    return tmp_path


async def test_every_step_of_a_chain_is_read_to_its_end(library: Path) -> None:
    async with coordinated(library, more=AGENTS + WORDY) as (desk, _):
        two = await desk.done(await desk.call("run_chain", chain="two"))
        assert await whole_text(desk, two["steps"][0]["output"]) == long_text("write 240000", 240_000)
        thirty = await desk.done(await desk.call("run_chain", chain="thirty"))
        assert size(thirty) <= MAX_ANSWER
        for number, step in enumerate(thirty["steps"]):
            assert await whole_text(desk, step["output"]) == long_text(f"{number}: write 6000", 6_000)
        both = await desk.call("wait", ids=[two["id"], thirty["id"]], full=True)
        assert (size(both) <= MAX_ANSWER, sum(bool(CUT.search(one)) for one in strings(both))) == (True, 31)
        for uri in ("", "/result", "/progress"):
            text = (await desk.client.read_resource(f"muster://runs/{two['id']}{uri}")).contents[0].text  # type: ignore[union-attr]
            assert len(text) <= MAX_ANSWER
            await every_cut_is_read(desk, json.loads(text))


async def test_the_result_of_a_run_as_a_resource_names_the_tool_that_reads_the_rest(tmp_path: Path) -> None:
    async with coordinated(tmp_path, more=AGENTS + WORDY) as (desk, _):
        run = await desk.done(await desk.call("ask", agent="wordy", prompt="300000"))
        found = await desk.client.read_resource(f"muster://runs/{run['id']}/result")
        output = json.loads(found.contents[0].text)["output"]  # type: ignore[union-attr]
        assert await whole_text(desk, output) == await whole_text(desk, run["output"]) == long_text("300000", 300_000)


async def test_a_task_is_read_in_full_with_its_prompt_log_and_calls(tmp_path: Path) -> None:
    prompt = long_text("please", 60_000) + "write 80000"
    async with coordinated(tmp_path, more=AGENTS + WORDY) as (desk, muster):
        task = await desk.done(await desk.call("submit_task", agent="wordy", prompt=prompt, tags=["t" * 200] * 100))
        assert len(task["prompt"]) < 300
        assert await whole_text(desk, task["prompt"]) == prompt
        assert await whole_text(desk, task["output"]) == long_text(prompt[:50], 80_000)
        for part in ("log", "events", "calls"):
            found = await desk.call("result", id=task["id"], part=part)
            await every_cut_is_read(desk, found)
            assert (len(found["rows"]), found["next_after"]) == (found["total"], None)
        (call,) = found["rows"]
        text = await followed(desk, f"result(id={task['id']!r}, part='call', key={call['key']!r}, field='/reply/text')")
        assert text == long_text(prompt[:50], 80_000)
        for _ in range(6):
            await muster.pool.tasks.submit(TaskSpec(prompt=prompt), tags=["t" * 200] * 100)
        listed = await desk.call("list_work", limit=100)
        assert len(listed["runs"]) == 7
        assert await every_cut_is_read(desk, listed) > 0
        waited = await desk.call("wait", ids=[one["id"] for one in listed["runs"]], timeout_secs=0)
        assert await every_cut_is_read(desk, waited) > 0


async def test_a_long_question_to_a_person_is_read_in_full_with_its_schema(tmp_path: Path) -> None:
    prompt = long_text("what is", 99_000)
    choices = {"type": "object", "properties": {"pick": {"enum": [f"choice {n}" for n in range(5_000)]}}}
    async with coordinated(tmp_path) as (desk, _):
        run = await desk.done(await desk.call("ask", agent="me", prompt=prompt, output_schema=choices))
        (question,) = run["questions"]
        assert await whole_text(desk, question["asked"]) == prompt
        assert await every_cut_is_read(desk, run) == 2
        read = await followed(desk, f"result(id={run['id']!r}, field='/questions/{question['key']}/schema')")
        assert json.loads(read) == choices


async def test_shared_texts_and_messages_are_listed_in_pages_and_read_in_full(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, muster):
        await desk.done(await desk.call("submit_task", prompt="begin"))
        known = {f"text {number:03}": long_text(str(number), 100_000 if number < 3 else 900) for number in range(120)}
        for name, text in known.items():
            assert size(await desk.call("context", action="set", name=name, text=text)) < 300
        read: dict[str, str] = {}
        after: str | None = ""
        while after is not None:
            found = await desk.call("context", action="list", after=after)
            assert (size(found) <= MAX_ANSWER, found["total"]) == (True, 120)
            read, after = read | found["context"], found["next_after"]
        cut = {name: await whole_text(desk, text) for name, text in read.items() if CUT.search(text)}
        assert (read | cut, len(cut)) == (known, 3)
        for number in range(30):
            await muster.pool.send("slot-1", long_text(str(number), 9_000))
        texts: list[str] = []
        found = {"next_after": 0}
        while found["next_after"] is not None:
            found = await desk.call("messages", action="unread", slot="slot-1", after=found["next_after"])
            assert (size(found) <= MAX_ANSWER, found["total"]) == (True, 30)
            texts += [await whole_text(desk, one["text"]) for one in found["messages"]]
        assert texts == [long_text(str(number), 9_000) for number in range(30)]


async def test_all_calls_and_events_of_a_large_run_are_listed_once(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, muster):
        run = await desk.done(await desk.call("run_suite", suites=["smoke"], agents=["sim/echo"], epochs=700))
        for part, name in (("calls", "key"), ("events", "seq")):
            rows: list[Any] = []
            after: str | None = None
            pages = 0
            while pages == 0 or after is not None:
                found = await desk.call(
                    "result", id=run["id"], part=part, **({} if after is None else {"after": after})
                )
                assert size(found) <= MAX_ANSWER
                rows, after, pages = [*rows, *found["rows"]], found["next_after"], pages + 1
                assert found["total"] == (700 if part == "calls" else (await muster.runs.find(run["id"])).last_seq)
            assert len({row[name] for row in rows}) == len(rows) == found["total"]
            assert pages > 1
        last = await desk.call("result", id=run["id"], part="events", after=found["total"] - 1)
        assert [row["kind"] for row in last["rows"]] == ["run.completed"]
        told = await desk.refused("result", id=run["id"], part="events", after="nonsense")
        assert told["message"] == "after must be the number of a row, not 'nonsense'"
        missing = await desk.refused("result", id=run["id"], part="calls", after="nonsense")
        assert (missing["error"], [one["path"] for one in missing["fields"]]) == ("not_found", ["after"])
