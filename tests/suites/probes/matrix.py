"""A matrix of what must never end with exit code 0: nothing of it was checked, or not as its author meant it.

Each group has a control that is sound and passes, so that what fails does so for its own fault.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.suites.probes.verdict import SAID, Probe, a_case, a_suite, answers


def each(*values: Any) -> tuple[Any, ...]:
    """Return values of all kinds."""
    return values


GOOD = a_suite(a_case())
CHECK = {"kind": "contains", "value": SAID}
ASKED = {"messages": [{"role": "user", "content": "hi"}]}
ITEM = {"id": "kind", "description": "It is kind.", "auto_check": CHECK}
TWO_TURNS = {**ASKED, "follow_ups": ["and?"]}
NOT = {"output": [{"kind": "not_contains", "value": "secret"}]}


def beside(name: str, text: str | bytes) -> Probe:
    """Put a file beside a sound suite, in the same folder."""
    return Probe(name=f"file {name}: {text[:400]!r}", files={"sound/cases.yaml": GOOD, name: text})


def with_case(label: str, case: Any, **head: Any) -> Probe:
    """Put a case beside a sound one, in the same suite."""
    return Probe(name=f"case {label}", files={"cases.yaml": a_suite(a_case(), case, **head)})


# Files.

HEADS: list[dict[str, Any]] = [
    *({"schema_version": value} for value in each(None, 0, 2, "1.0", "one", True, [], {}, -1, 1.5)),
    *({"skill_or_agent": value} for value in each(None, "", "Not Kebab", "UPPER", 5, [], {}, "a/b", "ä")),
    *({"cases": value} for value in each(None, [], {}, "x", 5, [None], [[]], ["x"], [5], [{}])),
    *({"defaults": value} for value in each(5, "x", [], {"tags": 5}, {"evaluator": "magic"}, {"timeout_secs": -1})),
    {"risk_tier": "huge"},
    {"variables": 5},
]
WITHOUT = ("schema_version", "skill_or_agent", "cases")
MISSPELT_HEADS = (
    *("schema_verison", "schemaversion", "schema-version", "Schema_Version", "schema_versoin"),
    *("skill_or_agnet", "skill-or-agent", "skillOrAgent"),
    *("case", "Cases", "casess", "csaes"),
)
RAW: list[tuple[str, str | bytes]] = [
    ("cases.yaml", ""),
    ("cases.yaml", "cases: ["),
    ("cases.yaml", "just text"),
    ("cases.yaml", "- a list"),
    ("cases.yaml", b"\0\0"),
    ("cases.yaml", GOOD.encode("utf-16")),
    ("more.yaml", GOOD.encode("utf-16")),
    ("cases.yaml", GOOD + "\n---\n" + GOOD),
    ("cases.yaml", "schema_version: 1\nschema_version: 1\nskill_or_agent: s\ncases: []\n"),
    ("cases.toml", "schema_version = 1"),
    ("more.toml", "[[cases]]\nid = 's/x'\n"),
    ("cases.json", GOOD),
    ("Cases.JSON", GOOD),
    ("deep/down/cases.json", "{}"),
    ("more.json", GOOD),
    (".hidden/cases.yaml", "broken: ["),
    (".hidden.yaml", "cases: []\n"),
    (".github/suites/s.yaml", "schema_version: 1\n"),
    ("more.yaml", "skill_or_agent: s\n"),
    ("more.yaml", "cases:\n  - id: s/x\n"),
    ("more.yaml", "  cases:\n  - id: s/x\n"),
    ("more.yaml", '{"x": 1, "cases": []}'),
    ("more.yaml", b"x" * 8_000_001),
    ("more.yaml", "{schema_version: 1, skill_or_agent: t, cases: [{id: t/one}]}"),
    ("more.yaml", "{name: x,\n 'cases': []}"),
    ("more.yaml", "{name: x, cases: ["),
    ("more.yaml", "name: x\n? cases\n: []\n"),
    ("more.yaml", "&a cases: []\n"),
    ("more.yaml", "!!str cases: []\n"),
    ("more.yaml", "name: x\rcases: []\r"),
    ("more.yaml", "Schema_Version: 1\nSkill_Or_Agent: s\nCases: []\n"),
    ("more.yml", "SCHEMA_VERSION: 1\nSKILL_OR_AGENT: s\nCASES: []\n"),
    ("more.toml", "Schema_Version = 1\nSkill_Or_Agent = 's'\n[[Cases]]\n"),
    ("more.json", '{"schema_version": 1, "cases": []}'),
    ("more.json", '{"Schema_Version": 1, "Skill_Or_Agent": "s", "Cases": []}'),
    ("more.yaml", "Cases:\n- {id: s/x, input: {}}\n"),
    ("more.yaml", "- schema_version: 1\n  skill_or_agent: s\n  cases: []\n"),
    ("more.json", "[" + GOOD + "]"),
    *((name, GOOD) for name in ("cases.ymal", "cases.yaml.txt", "cases.json5", "more.ymal", "cases.jsonl")),
    ("cases.jsonl", json.dumps(a_case("bad"))),
    ("more.json", json.dumps({"notes": "x" * 70_000})[:-1] + f", {GOOD[1:]}"),
]


def files() -> list[Probe]:
    suite = {"schema_version": 1, "skill_or_agent": "s", "cases": [a_case("other")]}
    found = [beside("cases.yaml", json.dumps(suite | head)) for head in HEADS]
    for name in WITHOUT:
        rest = {key: value for key, value in suite.items() if key != name}
        found += [beside(file, json.dumps(rest)) for file in ("cases.yaml", "more.yaml")]
    for name in MISSPELT_HEADS:
        letters = {"sc": "schema_version", "sk": "skill_or_agent"}
        known = letters.get(name[:2].lower(), "cases")
        renamed = {(name if key == known else key): value for key, value in suite.items()}
        found += [beside(file, json.dumps(renamed)) for file in ("cases.yaml", "more.yaml")]
    found += [beside(name, text) for name, text in RAW]
    found += [Probe(name=name, files={"sound/cases.yaml": GOOD}, prepare=prepare) for name, prepare in PREPARED.items()]
    return [*found, Probe(name="no suite", files={"x.txt": "x"}), Probe(name="empty", files={"a/.keep": ""})]


def _link(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "cases.yaml").write_text("broken: [", encoding="utf-8")
    (folder / "linked").symlink_to(elsewhere)


def _add_ignored(folder: Path) -> None:
    (folder / ".gitignore").write_text("data/\n", encoding="utf-8")
    (folder / "data").mkdir()
    (folder / "data" / "cases.yaml").write_text("broken: [", encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_GLOBAL": os.devnull}
    for arguments in (("init", "--quiet"), ("add", "--force", "data/cases.yaml")):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


def _hide_as_environment(folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "pyvenv.cfg").touch()
    (folder / "more" / "cases.yaml").write_text("broken: [", encoding="utf-8")


PREPARED: dict[str, Callable[[Path], None]] = {
    "linked folder": _link,
    "a suite that git ignores and knows": _add_ignored,
    "cases.yaml is a link to nowhere": lambda folder: (folder / "cases.yaml").symlink_to(folder / "nowhere"),
    "cases.json is a link to nowhere": lambda folder: (folder / "cases.json").symlink_to(folder / "nowhere"),
    "cases.yaml is a pipe": lambda folder: os.mkfifo(folder / "cases.yaml"),
    "a pipe": lambda folder: os.mkfifo(folder / "refunds.yaml"),
    "a link to nowhere": lambda folder: (folder / "refunds.yaml").symlink_to(folder / "nowhere"),
    "a link to no folder": lambda folder: (folder / "suites").symlink_to(folder / "nowhere"),
    "beside an empty pyvenv.cfg": _hide_as_environment,
}


# Cases.

FOREIGN = (
    *("assert", "asserts", "assertions", "check", "checks", "criteria", "expects", "expectations", "expected_output"),
    *("expected_answer", "ground_truth", "ideal", "metrics", "must_contain", "must_not_contain", "not_contains"),
    *("output", "outputs", "regex", "json_schema", "rubrics", "scorers", "graders", "validators", "success_criteria"),
    *("min_score", "minScore", "pass-threshold", "passing_score", "score_threshold", "thresholds", "max_latency"),
    *("only", "focus", "disabled", "enabled", "if", "when", "skip_if", "filter", "include", "exclude", "labels"),
    *("llm_rubric", "expected_json", "expected_tool_sequence", "target", "should", "timeout", "must_not", "fail_if"),
    *("reference", "referenceOutputs", "testing_criteria", "similarity_threshold", "max_turns"),
    *("must_not_have", "fail_on", "expected_refusal", "should_refuse", "schema", "similarity", "matchers", "criterion"),
    *("constraints", "required", "latency", "deadline"),
    *("matrix", "tests", "tool_sequence", "rubric", "golden_path", "process_cmd", "judge_prompt", "evaluator"),
)
MISSPELT: list[tuple[str, dict[str, Any]]] = [
    *((name, {name: ["smoke"]}) for name in ("tagz", "tasg", "Tags", "tag", "tgas", "tagss")),
    *((name, {name: 1.0}) for name in ("thresold", "treshold", "threshhold", "Threshold")),
    *((name, {name: NOT}) for name in ("expcted", "expect", "Expected", "expecetd", "expectd")),
    *((name, {name: {"evaluator": "judge"}}) for name in ("evaluator_cfg", "evaluator_confg", "evaluatorConfig")),
    *((name, {name: "later"}) for name in ("skpi", "Skip", "skipp")),
    *((name, {name: "rows.csv"}) for name in ("datset", "data_set", "Dataset")),
    *((name, {name: ["empty"]}) for name in ("accept", "acepts")),
    *((name, {name: 5}) for name in ("timeout_sec", "max_token", "maxTokens", "temprature", "seeds")),
    *((name, {"input": ASKED | {name: ["x"]}}) for name in ("follow_up", "followups", "follow_upps", "tool")),
    *((name, {"expected": {name: [CHECK], **NOT}}) for name in ("outputs", "ouput", "rubrics", "tool_sequnce", "any")),
    *((name, {"expected": {"output": [CHECK | {name: "x"}]}}) for name in ("feild", "turns", "path", "severity")),
    *((name, {"expected": {"rubric": [ITEM | {name: 1}]}}) for name in ("critcal", "wieght", "autocheck_", "owner")),
    *((name, {"evaluator_config": {name: 1}}) for name in ("golden_treshold", "evaluater", "threshold", "retries")),
]
BROKEN: list[tuple[str, Any]] = [
    ("nothing expected", {"expected": {}}),
    ("no expected", {"expected": None}),
    ("empty output", {"expected": {"output": []}}),
    ("empty sequence", {"expected": {"tool_sequence": []}}),
    ("expected is a list", {"expected": [CHECK]}),
    ("no messages", {"input": {"messages": []}}),
    ("no input", {"input": None}),
    ("unknown role", {"input": {"messages": [{"role": "boss", "content": "x"}]}}),
    ("other suite", {"id": "other/bad"}),
    ("no name", {"id": "s/"}),
    ("no id", {"id": None}),
    ("number as id", {"id": 5}),
    ("same id", {"id": "s/good"}),
    ("long id", {"id": "s/" + "x" * 300}),
    ("threshold above 1", {"threshold": 2}),
    ("threshold is no number", {"threshold": float("nan")}),
    ("two thresholds", {"threshold": 1, "evaluator_config": {"effectiveness_threshold": 0.1}}),
    ("unknown evaluator", {"evaluator_config": {"evaluator": "magic"}}),
    ("golden without a file", {"evaluator_config": {"evaluator": "golden"}}),
    ("golden that is not there", {"evaluator_config": {"evaluator": "golden", "golden_path": "none.txt"}}),
    ("golden outside", {"evaluator_config": {"evaluator": "golden", "golden_path": "../x.txt"}}),
    ("process without a command", {"evaluator_config": {"evaluator": "process"}}),
    ("dataset that is not there", {"dataset": "none.csv"}),
    ("unknown variable", {"variables": {"a": "b"}, "description": "{{c}}"}),
    ("weights of nothing", {"expected": {"rubric": [ITEM | {"weight": 0}]}}),
    ("negative weight", {"expected": {"rubric": [ITEM | {"weight": -1}]}}),
    ("same item twice", {"expected": {"rubric": [ITEM, ITEM]}}),
    ("turn that is not there", {"expected": {"output": [CHECK | {"turn": 2}]}}),
    ("unknown quality", {"accepts": ["bad"]}),
    *(
        (f"skip {value!r}", {"skip": value})
        for value in each(False, True, 0, 1.5, " ", "", "\u00a0", "false", "No", [], {})
    ),
]
CHECKS: list[dict[str, Any]] = [
    {"kind": "contains"},
    {"kind": "contains", "value": ""},
    {"kind": "not_contains", "value": ""},
    {"kind": "not_contains"},
    {"kind": "regex", "value": ""},
    {"kind": "regex", "value": "("},
    {"kind": "equal", "value": SAID},
    {"kind": "icontains", "value": SAID},
    {"kind": None, "value": SAID},
    {"value": SAID},
    {"kind": "json_path", "value": "$["},
    {"kind": "json_path", "value": ""},
    {"kind": "not_contains", "value": "x", "field": ""},
    {"kind": "not_contains", "value": "x", "field": "$.["},
    {"kind": "not_contains", "value": "x", "field": "missing"},
    {"kind": "not_contains", "value": "x", "schema": {}},
    {"kind": "not_contains", "value": "x", "golden_path": "g"},
    {"kind": "golden_diff"},
    {"kind": "golden_diff", "value": "none.txt"},
    {"kind": "json_schema"},
    {"kind": "json_schema", "schema": {"type": "thing"}},
    {"kind": "json_schema", "schema": {"requred": ["a"]}},
    {"kind": "json_schema", "schema": {"format": "e-mail"}},
    {"kind": "json_schema", "schema": {}, "schema_file": "x.json"},
    {"kind": "json_schema", "schema_file": "none.json"},
    {"kind": "is_json"},
    {"kind": "is_json", "value": "{}"},
    {"kind": "contains_json"},
    {"kind": "is_json", "schema": {"$schema": "http://example.com/none"}},
    {"kind": "contains_json", "schema": {"properties": {"a": {"minlength": 1}}}},
]


def cases() -> list[Probe]:
    found = []
    for name in FOREIGN:
        more = {name: ["x"]}
        found += [
            with_case(f"{name} of a case", a_case("bad", **more)),
            with_case(f"{name} of input", a_case("bad", input=ASKED | more)),
            with_case(f"{name} at the top", a_case("bad"), **more),
            with_case(f"{name} of defaults", a_case("bad"), defaults=more),
            with_case(f"{name} of a message", a_case("bad", input={"messages": [ASKED["messages"][0] | more]})),
        ]
    found.append(with_case("tag at the top", a_case("bad"), tag="smoke"))
    for name in ("args", "arguments", "match", "input"):
        tool = {"name": "look", "results": [{name: {"x": 1}, "result": "seen"}]}
        found.append(with_case(f"{name} of a tool's result", a_case("bad", input=ASKED | {"tools": [tool]})))
    found += [with_case(name, a_case("bad") | change) for name, change in (*MISSPELT, *BROKEN)]
    found += [with_case(json.dumps(check), a_case("bad", expected={"output": [check]})) for check in CHECKS]
    return found


# Filters.


def filters() -> list[Probe]:
    options: list[dict[str, Any]] = [{"filter": "s/good"}, {"filter": "go*"}, {"tags": ["smoke"]}, {"only": ["s/good"]}]
    damaged = [*MISSPELT[:12], *BROKEN[:14]]
    sound = {"cases.yaml": a_suite(a_case(), a_case("other", tags=["slow"]))}
    nothing: list[dict[str, Any]] = [{"filter": "none*"}, {"tags": ["none"]}, {"only": ["s/none"]}, {"tags": [""]}]
    return [
        *(
            Probe(
                name=f"{option} leaves out {name}",
                files={"cases.yaml": a_suite(a_case(), a_case("bad", tags=["slow"]) | change)},
                options=option,
            )
            for name, change in damaged
            for option in options
        ),
        *(Probe(name=f"{option} selects nothing", files=sound, options=option) for option in nothing),
        *(
            Probe(
                name=f"{option} leaves out the tag {tag!r}",
                files={"cases.yaml": a_suite(a_case(), a_case("bad", tags=[tag], expected=NOT))},
                said=answers({"s/good": SAID, "s/bad": "secret"}),
                options=option,
            )
            for tag in ("Smoke", "smoke ", "SMOKE")
            for option in ({"tags": ["smoke"]}, {"tags": ["Smoke"]})
        ),
        Probe(name="everything is skipped", files={"cases.yaml": a_suite(a_case(skip="later"))}),
    ]


# Recorded answers and epochs.

WHITE = (
    *("", " ", "\n", "\t\r\n", "\u200b", "\u00a0", "\u2060\u200d", "\ufeff"),
    *("\x1b[0m", "\x1b]0;title\x07", "\x1b[1;31m \x1b[0m", "\x9b0m"),
)


NOT_WHOLE: tuple[dict[str, Any], ...] = (
    *({"finish_reason": reason} for reason in ("length", "content_filter", "tool_calls")),
    *({"stop_reason": reason} for reason in ("refusal", "max_tokens")),
    *({"error": "overloaded"}, {"is_error": True}, {"truncated": True}, {"refusal": "I cannot"}),
)
CASE_ID = {"case_id": "s/good"}


def replays() -> list[Probe]:
    kinds: list[dict[str, Any]] = [
        {"output": [{"kind": "not_contains", "value": "secret"}]},
        {"output": [{"kind": "regex", "value": "^(?!.*secret)"}]},
        {"rubric": [ITEM | {"auto_check": {"kind": "not_contains", "value": "secret"}}]},
    ]
    found = [
        Probe(
            name=f"white {text!r} for {json.dumps(kind)[:40]}",
            files=_only(expected=kind),
            said=answers({"s/good": text}),
        )
        for text in WHITE
        for kind in kinds
    ]
    two = _only(input=TWO_TURNS, expected=NOT)
    turns = [
        {"s/good": "a"},
        {"s/good 1 2": "a"},
        {"s/good": "a", "s/good 1 2": " "},
        {"s/good": "", "s/good 1 2": "a"},
    ]
    turns += [{"s/good": "a", "s/good 2 2": "b"}, {"s/good": "a", "s/good 1 2": "b", "s/good 1 3": "c"}]
    found += [Probe(name=f"turns {said}", files=two, said=answers(said)) for said in turns]
    one = _only(expected=NOT)
    found.append(Probe(name="a turn too many", files=one, said=answers({"s/good": "a", "s/good 1 2": "b"})))
    found.append(Probe(name="no answer", files=one, said=answers({"s/bad": "a"})))
    raw = ("", "{}", "[]", "[5]", "[", "null", '[{"tool": "agent_response"}]', '[{"tool": "other"}]')
    found += [Probe(name=f"answers {text!r}", files=one, said=text) for text in raw]
    entry = {"tool": "agent_response", "args_match": CASE_ID, "response": {"content": "a"}}
    for name, value in (("epoch", 0), ("epoch", "1"), ("epoch", True), ("turn", 0), ("turn", 1.0), ("turn", None)):
        wrong = entry | {"args_match": {"case_id": "s/good", name: value}}
        found.append(Probe(name=f"{name} {value!r}", files=one, said=[wrong]))
    for name in ("epoch", "turn", "Turn", "epohc"):
        found.append(Probe(name=f"{name} beside args_match", files=one, said=[entry | {name: 2}]))
    for name in ("trun", "Epoch", "turns"):
        found.append(
            Probe(name=f"{name} of args_match", files=one, said=[entry | {"args_match": {**CASE_ID, name: 2}}])
        )
    for said in NOT_WHOLE:
        found.append(
            Probe(name=f"an answer with {said}", files=one, said=[entry | {"response": {"content": "a"} | said}])
        )
        found.append(Probe(name=f"{said} beside an answer", files=one, said=[entry | said]))
    found.append(Probe(name="epoch 2 of 1", files=one, said=answers({"s/good": "a", "s/good 2 1": "secret"})))
    twice = json.dumps([entry]).replace('"content"', '"content": "secret", "content"')
    found.append(Probe(name="content twice", files=one, said=twice))
    later = answers({"s/good": "a", "s/good 1 2": "b", "s/good 1 4": "c"})
    found.append(Probe(name="turn 4 of 2", files=two, said=later))
    found.append(Probe(name="two answers", files=one, said=[entry, entry | {"response": "b"}]))
    found.append(Probe(name="no text", files=one, said=[entry | {"response": {"content": None}}]))
    return found


def epochs() -> list[Probe]:
    found = []
    for number in range(2, 6):
        for known in range(1, number):
            said = answers({f"s/good {epoch} 1": "a" for epoch in range(1, known + 1)})
            name = f"{known} of {number} epochs"
            found.append(Probe(name=name, files=_only(expected=NOT), said=said, options={"epochs": number}))
        bad = answers({f"s/good {epoch} 1": "a" if epoch < number else "secret" for epoch in range(1, number + 1)})
        found.append(
            Probe(name=f"the last of {number} fails", files=_only(expected=NOT), said=bad, options={"epochs": number})
        )
    return found


REFERENCES = (
    *("See [1].", "As shown in [1], it is so.", "It is so. [1]", "It is so.[1]", "It is so [1], [2].", "Sources: [1]"),
    *("[1] Smith, 2020", "**Yes** [12]", "- [ ] to do", "[1]: https://example.com", "Yes\u2019 [1]", '"Yes" [1]'),
)


JSON_ANSWERS = (
    'Sure: {"a": 1}',
    '{"a": 1} and more',
    '{"a": 1}\n{"a": 2}',
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": 1e999}',
    '{"a": 1, "a": 2}',
    '{"a": 1',
    "{'a': 1}",
    "[1]",
    '{"b": 1}',
)


# JSON that is broken, cut off or not alone; each part of it would pass by itself.
FRAGMENTS = (
    *('{"a": "bad", "x": {"a": 1}', '{"x": {"a": 1}', '{"x": {"a": 1}, "y": ', '{"a": 1} [1, 2]', '[] {"a": 1}'),
    *('{"a": 1,} {"a": 1}', '{"a": 1} {"b": ', '[{"a": 1}', '[1, {"a": 1}', '{x: {"a": 1}}', '{x: {"a": 1}'),
    *('"x": {"a": 1}}', '{"a": 1}]', '```json\n{"x": {"a": 1}\n```', 'It is {"x": {"a": 1}, "y": nothing}'),
)


# What no answer fits: it refers to a place where keywords are not looked for, and one of them is misspelt.
REFERRING: list[dict[str, Any]] = [
    {"$ref": "#/x-my", "x-my": {"requierd": ["b"]}},
    {"$ref": "#/x-my/0", "x-my": [{"properties": {"a": {"minmum": 5}}}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/x-my"}}, "x-my": {"formt": "x"}},
]


def of_references() -> list[Probe]:
    checks: list[dict[str, Any]] = [
        {"kind": "contains_json"},
        {"kind": "contains_json", "schema": {"type": "array"}},
        {"kind": "json_path", "value": "$[0]"},
        {"kind": "not_contains", "value": "x", "field": "$[*]"},
    ]
    found = [({"output": [check]}, text) for check in checks for text in REFERENCES]
    found += [({"output": [{"kind": "json_schema", "schema": schema}]}, '{"a": 1}') for schema in REFERRING]
    infinite = ('{"a": 2e999}', '{"a":-1e999}', '{"a": [1e999]}', '{"a":1e1000}')
    found += [({"output": [{"kind": "equals", "value": '{"a": 1e999}'}]}, text) for text in infinite]
    return [
        Probe(name=f"{json.dumps(wanted)} of {text}", files=_only(expected=wanted), said=answers({"s/good": text}))
        for wanted, text in found
    ]


def of_fragments() -> list[Probe]:
    checks: list[dict[str, Any]] = [
        {"kind": "contains_json", "schema": {"type": "object", "required": ["a"]}},
        {"kind": "contains_json", "schema": {}},
        {"kind": "equals", "value": "1", "field": "a"},
        {"kind": "not_contains", "value": "bad", "field": "a"},
        {"kind": "json_path", "value": "$..a"},
    ]
    return [
        Probe(
            name=f"{json.dumps(check)} of {text}",
            files=_only(expected={"output": [check]}),
            said=answers({"s/good": text}),
        )
        for check in checks
        for text in FRAGMENTS
    ]


def of_json() -> list[Probe]:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}}}
    checks = [{"kind": kind, "schema": schema} for kind in ("json_schema", "is_json")]
    checks += [{"kind": "equals", "value": '{"a":1}'}, {"kind": "equals", "value": "1", "field": "b"}]
    return [
        Probe(
            name=f"{check['kind']} {check.get('field', '')} of {text}",
            files=_only(expected={"output": [check]}),
            said=answers({"s/good": text}),
        )
        for check in checks
        for text in JSON_ANSWERS
        if not (check.get("field") == "b" and '"b"' in text)
    ]


def _only(**changes: Any) -> dict[str, str]:
    return {"cases.yaml": a_suite(a_case(**changes))}


PROBES = {
    "files": files(),
    "cases": cases(),
    "filters": filters(),
    "replays": replays(),
    "epochs": epochs(),
    "json": of_json(),
    "fragments": of_fragments(),
    "references": of_references(),
}
CONTROLS = [
    beside("more/cases.yaml", a_suite(a_case("other"))),
    beside("covid.yaml", "country: x\ncases: 12\n"),
    with_case("sound", a_case("bad", owner="me", title="x")),
    with_case(
        "names of a message",
        a_case("bad", input={"messages": [ASKED["messages"][0] | {"name": "x", "tool_calls": []}]}),
    ),
    with_case("skipped", a_case("bad", skip="waits for issue 12")),
    Probe(name="filter", files={"cases.yaml": a_suite(a_case(), a_case("x"))}, options={"filter": "s/good"}),
    Probe(name="replay", files=_only(input=TWO_TURNS, expected=NOT), said=answers({"s/good": "a", "s/good 1 2": "b"})),
    Probe(
        name="epochs",
        files=_only(expected=NOT),
        said=answers({"s/good 1 1": "a", "s/good 2 1": "a"}),
        options={"epochs": 2},
    ),
    Probe(
        name="whole",
        files=_only(),
        said=[
            {
                "tool": "agent_response",
                "args_match": CASE_ID,
                "response": {"content": SAID, "finish_reason": "stop", "error": None, "is_error": False, "model": "m"},
            }
        ],
    ),
    Probe(name="empty", files=_only(expected=NOT, accepts=["empty"]), said=answers({"s/good": ""})),
    Probe(name="json", files=_only(expected={"output": [{"kind": "is_json"}]}), said=answers({"s/good": '{"a": 1}'})),
    Probe(
        name="JSON beside a reference",
        files=_only(
            expected={"output": [{"kind": "contains_json", "schema": {"$ref": "#/x-my", "x-my": {"type": "array"}}}]}
        ),
        said=answers({"s/good": "As in [1]:\n[7]\n[ ] to do"}),
    ),
]
