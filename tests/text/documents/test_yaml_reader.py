"""YAML, read event by event."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.text.document_tree import Unreadable, plain_value
from muster.text.documents.yaml_reader import MAX_CASE, YamlFile
from tests.suites.format.suites import write


def head(folder: Path, text: str | bytes) -> Any:
    return plain_value(YamlFile(write(folder, text)).head())


def value(folder: Path, text: str) -> Any:
    return head(folder, f"a: {text}\n")["a"]


def refusal(folder: Path, text: str | bytes) -> tuple[int | None, str]:
    file = YamlFile(write(folder, text))
    with pytest.raises(Unreadable) as caught:
        file.head()
    return caught.value.line, caught.value.message


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("true", True),
        ("FALSE", False),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-7", -7),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.50", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.INF", float("-inf")),
        ("1.0.0", "1.0.0"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("!!float 12", 12),
        ("! 12", "12"),
        ("!!null x", None),
        ("!!map {b: 1}", {"b": 1}),
        ("!!seq [1]", [1]),
    ],
)
def test_only_the_words_of_the_core_schema_are_special(tmp_path: Path, text: str, meaning: object) -> None:
    found = value(tmp_path, text)
    assert (found, type(found)) == (meaning, type(meaning))


def test_nan_is_a_number(tmp_path: Path) -> None:
    assert value(tmp_path, ".nan") != value(tmp_path, ".nan")


def test_a_number_without_end_is_refused_only_where_a_number_is_wanted(tmp_path: Path) -> None:
    written = YamlFile(write(tmp_path, "a: " + "9" * 5000)).head()["a"]
    assert str(written) == "9" * 5000
    with pytest.raises(ValueError, match="digits"):
        plain_value(written)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("# nothing\n\n", 1, "empty"),
        (b"\xef\xbb\xbf", 1, "empty"),
        ("- a\n", 1, "the file must be a mapping"),
        ("\njust text\n", 2, "the file must be a mapping"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' stands here twice, first in line 1"),
        ("b:\n  c: 1\n  c: 2\n", 3, "'c' stands here twice, first in line 2"),
        ("1: a\n'1': b\n", 2, "'1' stands here twice"),
        ("cases: []\ncases: []\n", 2, "'cases' stands here twice"),
        ("a: 1\n---\nb: 1\n", 2, "second document"),
        ("a: 1\n\tb: 2\n", 2, "indent with spaces, not with tabs"),
        ("a:\n\t- b\n", 2, "indent with spaces, not with tabs"),
        ("a: [1,\nb: 2\n", 3, "not valid YAML: the [ opened in line 1 is not closed, or a comma is missing"),
        ("a: b: c\n", 1, "not valid YAML: unexpected ':'; quote a value that holds ': '"),
        ("a: 'x\n\n\n", 4, "not valid YAML: the quote opened in line 1 is not closed"),
        ("a: [\n", 2, "not valid YAML: a value is missing here, or a [ or { before it is not closed"),
        ("a: {b\n", 2, "not valid YAML: the { opened in line 1 is not closed"),
        ("a: @b\n", 1, "not valid YAML: a value cannot begin with this character; quote it"),
        ('a: "\\q"\n', 1, "not valid YAML: unknown escape in double quotes; use single quotes"),
        ("a:\n  - b\n c: d\n", 3, "not valid YAML: expected a key here; look at the indentation"),
        ('a: "\\ud800"\n', 1, "not valid YAML"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8: save it as UTF-8"),
        (b"a: 1\nb: \xc3", 2, "not UTF-8"),
        ("a: 1\n".encode("utf-16"), 1, "it looks like UTF-16"),
        (b"a: 1\nb: 'x\x00'\n", 2, "a NUL character"),
        (b"a: 1\n\nb: \x1b[0m\n", 3, "the control character 0x1b"),
        ("a: 1\nb: '\ufffe'\n", 2, "control characters are not allowed"),
        ("a: &x [*x]\n", 1, "no anchor &x before this, or this is inside of it"),
        ("a: *x\n", 1, "no anchor &x"),
        ("? [a]\n: 1\n", 1, "a key must be a word"),
        ("a: 1\nb: !!python/object:os.system x\n", 2, "tag:yaml.org,2002:python/object:os.system is not known"),
        ("a: !thing {b: 1}\n", 1, "the tag !thing is not known"),
        ("a: !!set [b]\n", 1, "is not known"),
        ("a: !!int x\n", 1, "is not known"),
        ("a: 1\ncases: {b: 1}\n", 2, "cases must be a list"),
        ("a: 1\ncases:\n", 2, "cases must be a list"),
        ("a: " + "[" * 100 + "]" * 100, 1, "more than 64 levels deep"),
        ("cases: " + "[" * 100_000, 1, "more than 64 levels deep"),
        ("cases:\n- " + "{a: " * 100_000, 2, "more than 64 levels deep"),
        ("a: {<<: 5}\n", 1, "<< takes a mapping"),
    ],
)
def test_what_is_no_suite_is_refused_with_its_line(tmp_path: Path, text: str | bytes, line: int, words: str) -> None:
    found, message = refusal(tmp_path, text)
    assert words in message
    assert found == line


def test_a_fault_behind_the_cases_is_found_before_the_first_case(tmp_path: Path) -> None:
    assert refusal(tmp_path, "cases:\n- a\n- [b\nc: 1\n")[0] == 4


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path: Path) -> None:
    file = YamlFile(write(tmp_path, b"\xef\xbb\xbfa: 1\r\ncases:\r\n- |\r\n  x\r\n  y\r\n"))
    assert file.head().lines == {"a": 1, "cases": 2}
    assert list(file.cases()) == [("x\ny\n", 3)]


def test_every_part_knows_its_line(tmp_path: Path) -> None:
    text = "a: 1\ncases:\n\n# a comment\n- id: x\n  list:\n    - p\n\n    - q\n-\n  id: y\n"
    (first, one), (second, two) = YamlFile(write(tmp_path, text)).cases()
    assert (one, two) == (5, 11)
    assert first.lines == {"id": 5, "list": 6}
    assert first["list"].lines == [7, 9]
    assert second.line == 11


def test_cases_may_come_before_the_rest(tmp_path: Path) -> None:
    file = YamlFile(write(tmp_path, "cases:\n- 1\n- 2\nschema_version: 1\n"))
    assert plain_value(file.head()) == {"cases": None, "schema_version": 1}
    assert [plain_value(case) for case, _ in file.cases()] == [1, 2]


def test_a_file_without_cases_has_none(tmp_path: Path) -> None:
    assert list(YamlFile(write(tmp_path, "a: 1\n")).cases()) == []


def test_anchors_work_from_anywhere_before(tmp_path: Path) -> None:
    text = """\
shared: &shared {deep: [&word hello]}
cases:
- &first {id: 1, said: *word}
- *first
- {<<: *first, id: 2}
- {<<: [{a: 1}, {a: 2, b: 2}], b: 3}
- {"<<": {c: 1}}
later: *first
<<: *first
"""
    file = YamlFile(write(tmp_path, text))
    found = plain_value(file.head())
    assert found["later"] == {"id": 1, "said": "hello"}
    assert found["id"] == 1
    assert [plain_value(case) for case, _ in file.cases()] == [
        {"id": 1, "said": "hello"},
        {"id": 1, "said": "hello"},
        {"id": 2, "said": "hello"},
        {"a": 1, "b": 3},
        {"<<": {"c": 1}},
    ]


def laughs(levels: int) -> str:
    lines = ["l0: &l0 [" + ", ".join(["ha"] * 10) + "]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


def test_a_billion_laughs_are_refused_at_once(tmp_path: Path) -> None:
    line, message = refusal(tmp_path, laughs(30))
    assert "aliases expanded" in message
    assert line is not None
    assert line < 8
    in_case = laughs(5) + "cases:\n- {a: *l4, b: [" + "*l4, " * 8 + "]}\n"
    ((found, _),) = YamlFile(write(tmp_path, in_case)).cases()
    assert "aliases expanded" in found.message


def test_anchors_may_not_fill_the_memory_together(tmp_path: Path) -> None:
    text = f"k: &a {'x' * 7_000_000}\n" + "".join(f"k{n}: &a{n} [*a]\n" for n in range(10))
    line, message = refusal(tmp_path, text)
    assert (line, message) == (10, "there is too much under anchors in this file")


def test_one_case_is_bounded_and_many_are_not(tmp_path: Path) -> None:
    half = "x" * (MAX_CASE // 2)
    several = YamlFile(write(tmp_path, f"cases:\n- {half}\n- {half}\n- {half}\n"))
    assert sum(1 for _ in several.cases()) == 3
    one = YamlFile(write(tmp_path, f"cases:\n- [{half}, {half}]\n"))
    ((found, _),) = one.cases()
    assert "the most for one case" in found.message


@pytest.mark.parametrize(
    ("damaged", "column", "words"),
    [
        ("{a: 1, b: 2, a: 3}", 16, "the key 'a' stands here twice"),
        ("[[*nothing], {b: [1]}]", 5, "no anchor &nothing"),
        ("{a: {b: [!thing {c: 1}, 2]}, d: 1}", 12, "the tag !thing is not known"),
        ("{a: &kept [1], b: {? [c] : 1}}", 24, "a key must be a word"),
        ("{a: &lost {b: 1, b: 2}}", 20, "the key 'b' stands here twice"),
    ],
)
def test_after_a_case_that_cannot_be_built_the_next_one_is_read(
    tmp_path: Path, damaged: str, column: int, words: str
) -> None:
    source = YamlFile(write(tmp_path, f"cases:\n- first\n- {damaged}\n- last\nname: x\n"))
    assert source.head()["name"] == "x"
    first, (found, line), last = source.cases()
    assert (first[0], line, last) == ("first", 3, ("last", 4))
    assert isinstance(found, Unreadable)
    assert (words in found.message, found.line, found.column) == (True, 3, column)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn"), exclude_characters="\ufeff\u2028\u2029")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc<-", max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_json_is_read_as_json(tmp_path_factory: pytest.TempPathFactory, found: object) -> None:
    folder = tmp_path_factory.getbasetemp()
    assert value(folder, json.dumps(found, ensure_ascii=False)) == found


@given(st.text("ab:-[]{}&*!|>'\"#%@`?,<~ \n\t1.\x85", max_size=40))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = YamlFile(write(tmp_path_factory.getbasetemp(), text))
    with suppress(Unreadable):
        file.head()
        assert all(line > 0 for _, line in file.cases())


def test_without_libyaml_the_same_is_read(tmp_path: Path) -> None:
    write(tmp_path, "a: [1, yes]\ncases:\n- &x {id: 1.10}\n- *x\n", "good.yaml")
    write(tmp_path, "a: 1\n\tb: 2\n", "bad.yaml")
    program = """
import sys
sys.modules["yaml._yaml"] = None
import yaml
from pathlib import Path
from muster.text.document_tree import Unreadable
from muster.text.documents.yaml_reader import YamlFile
assert not yaml.__with_libyaml__
print([dict(case) for case, line in YamlFile(Path("good.yaml")).cases()])
try:
    YamlFile(Path("bad.yaml")).head()
except Unreadable as error:
    print(error.line, error.message)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    good, bad = done.stdout.splitlines()
    assert good == "[{'id': '1.10'}, {'id': '1.10'}]"
    assert bad.startswith("2 not valid YAML")
    assert "tabs" in bad


def outcome(file: YamlFile, *, once: bool) -> object:
    """Return everything that is read of a file, with all lines, or that it is refused."""
    try:
        first = file.first_head() if once else None
        head = first if first is not None else file.head()
        cases = list(file.cases(once=first is not None))
    except Unreadable:
        return None
    return repr(head), head.lines, head.line, [(_refusal(case) or repr(case), line) for case, line in cases]


def _refusal(case: Any) -> tuple[str, int | None, int | None] | None:
    return (case.message, case.line, case.column) if isinstance(case, Unreadable) else None


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("a: 1\ncases:\n- b\n- c\n", True),
        ("cases:\n  - b\n", True),
        ("a: 1\ncases: [b, c]\n", True),
        ("a: 1\ncases: [b,\n  c]\n", True),
        ("a: 1\ncases: [b,\nc]\n", False),
        ("a: 1\ncases:\n- b\nd: 1\n", False),
        ("a: 1\ncases:\n- b\n-d: 1\n", False),
        ("a: 1\ncases:\n- b\n'd': 1\n", False),
        ("a: 1\ncases:\n- b\n? d\n: 1\n", False),
        ("a: 1\ncases:\n- b\n<<: {d: 1}\n", False),
        ("<<: {d: 1}\ncases:\n- b\n", True),
        ("a: 1\ncases:\n- b\n# a comment\n\n", True),
        ("a: 1\ncases:\n- b\n...\n", False),
        ("---\na: 1\ncases:\n- b\n", True),
        ("%YAML 1.1\n---\na: 1\ncases:\n- b\n", True),
        ("a: 1\ncases:\n- b\n---\n", False),
        ("a: 1\ncases:\n- b\n--- c\n", False),
        ("{a: 1, cases: [b]}\n", False),
        ("{\ncases: [b],\n a: 1}\n", False),
        ("  a: 1\n  cases:\n  - b\n  d: 1\n", False),
        ("&x\n  a: 1\n  cases:\n  - b\n  d: 1\n", False),
        ("? cases\n: - b\n", False),
        ("a: 1\ncases:\n- |\n  b\n\n  c\n", True),
        ("a: |\n  b\ncases:\n- >-\n  # no comment\n", True),
        ("a: 1\ncases:\n- 'b\nc: d'\n", False),
        ("a: 1\ncases:\n- b\n\td\n", True),
        ("a: 1\ncases:\n- b\n\t\n", False),
        ("a: 1\ncases:\n-\tb\n", False),
        ("a: 1\ncases:\n- b\n-", False),
        ("a: 1\ncases:\n-\n", True),
        ("a: 1\ncases: # none\n- b\n", True),
        ("a: 1\r\ncases:\r\n- b\r\n- c\r\n", True),
        ("a: 1\rcases:\r- b\rd: 1\r", False),
        ("a: 1\ncases:\n- b\x85d: 1\n", False),
        ("a: 1\ncases:\n- b\u2028d: 1\n", False),
        ("ä: €\U0001f600\ncases:\n- b\n", True),
        ("\ufeffä: 1\ncases:\n- b\nc: 1\n", False),
        ("\ufeffä: 1\ncases:\n- b\n", True),
        ("a: 1\ncases:\n- b\n" + "  - c\n" * 400_000 + "d: 1\n", False),
        ("a: 1\n", False),
    ],
)
def test_the_head_is_read_without_the_cases_when_nothing_can_follow_them(
    tmp_path: Path, text: str, first: bool
) -> None:
    file = YamlFile(write(tmp_path, text))
    if text.count("\t") == 0:
        assert (file.first_head() is not None) == first
    assert outcome(file, once=True) == outcome(file, once=False)


def test_what_comes_after_the_cases_is_found_across_the_pieces_of_a_file(tmp_path: Path) -> None:
    # The line that holds a key begins at every place around the end of the first piece.
    for more in range(-12, 4):
        padding = "# " + "x" * ((1 << 20) + more - len("cases:\n- a\n# \n")) + "\n"
        for tail, last in (("key: 1\n", False), ("- b\n", True), ("-b: 1\n", False)):
            file = YamlFile(write(tmp_path, "cases:\n- a\n" + padding + tail))
            assert (file.first_head() is not None) == last


LINES = (
    *("a: 1", "b: [1,", "2]", "cases:", "cases: [", "]", "- c", "  - d", "- {e: 1}", "-f: 1", "g: |", "  h", "# i"),
    *("", "---", "...", "? j", ": k", "'l': \"m", 'n"', "&o p: q", "<<: {r: 1}", "\ts", "- &t [u", "- *t", "  v: w"),
    *("{", "}", "%YAML 1.1", "\ufeff"),
)


@given(
    st.lists(st.sampled_from(LINES), max_size=8), st.sampled_from(["\n", "\r\n", "\r", "\x85", "\u2028"]), st.booleans()
)
def test_reading_once_gives_the_same_as_parsing_first(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, marked: bool
) -> None:
    text = end.join(["a0: 1", "cases:", "- z", *lines] if len(lines) % 2 else lines) + end
    file = YamlFile(write(tmp_path_factory.getbasetemp(), ("\ufeff" if marked else "") + text))
    assert outcome(file, once=True) == outcome(file, once=False)
