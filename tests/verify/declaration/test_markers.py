"""Markers of files that wait to be verified."""

import json
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadFile
from muster.verify.declaration.verification import LeftOut, Marker, Verification
from muster.verify.sources.markers import MAX_MARKER, clear_markers, done_markers, read_markers
from muster.verify.sources.source import FileInfo, VerifySnapshot


class Desk:
    """A root with two files, and a folder of markers."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / ".muster" / "pending"
        self.folder.mkdir(parents=True)
        (root / "src").mkdir()
        for name in ("src/a.py", "src/b.py"):
            (root / name).write_text(f"# {name}\n")

    def mark(self, content: str | bytes, name: str = "one") -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self) -> tuple[Marker, ...]:
        return read_markers(self.folder, self.root)

    def files(self, content: str | bytes) -> tuple[str, ...]:
        self.mark(content)
        (found,) = self.read()
        return found.files

    def snapshot(self, *names: str) -> VerifySnapshot:
        return VerifySnapshot(files=tuple(self.info(name) for name in names))

    def info(self, name: str) -> FileInfo:
        data = (self.root / name).read_bytes()
        return FileInfo(path=name, digest=sha256(data).hexdigest(), lines=1, bytes=len(data))

    def wanted(self) -> Verification:
        return Verification(root=str(self.root), files=(), verifiers=(), markers=self.read())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


BOTH = ["src/a.py", "src/b.py"]


@pytest.mark.parametrize(
    ("content", "files"),
    [
        ('"src/a.py"', BOTH[:1]),
        (json.dumps(BOTH), BOTH),
        (json.dumps({"file": "src/a.py", "time": 12}), BOTH[:1]),
        (json.dumps({"path": "./src/../src/a.py"}), BOTH[:1]),
        (json.dumps({"files": BOTH}), BOTH),
        (json.dumps({"paths": "src/b.py", "file": "src/a.py"}), BOTH),
        (json.dumps({"files": [{"path": "src/a.py"}, ["src/b.py"]]}), BOTH),
        ("\ufeffsrc/a.py", BOTH[:1]),
        ("# why\n\n  src/a.py\r\nsrc/b.py\nsrc/a.py\n", BOTH),
    ],
)
def test_a_marker_is_json_or_a_path_a_line(desk: Desk, content: str, files: list[str]) -> None:
    assert desk.files(content) == tuple(files)


def test_absolute_paths_under_the_root_are_relative_to_it(desk: Desk) -> None:
    assert desk.files(str(desk.root / "src" / "a.py")) == ("src/a.py",)
    (desk.root / "[id].tsx").write_text("x")
    assert desk.files("[id].tsx\n") == ("[id].tsx",)


def test_any_name_is_a_marker_but_hidden_ones_and_folders_are_not(desk: Desk) -> None:
    for name in ("z", "a.json", "ümlaut and spaces.txt"):
        desk.mark("src/a.py", name)
    desk.mark("nonsense", ".hidden")
    (desk.folder / "sub").mkdir()
    found = desk.read()
    assert [Path(one.path).name for one in found] == ["a.json", "z", "ümlaut and spaces.txt"]
    assert all(Path(one.path).is_absolute() for one in found)
    assert {one.digest for one in found} == {sha256(b"src/a.py").hexdigest()}


def test_without_a_folder_there_are_no_markers(tmp_path: Path) -> None:
    assert read_markers(tmp_path / "no", tmp_path) == ()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "names no file; write a path into it or remove"),
        ("# only this\n", "names no file"),
        ("{}", "names no file"),
        ('{"other": "src/a.py"}', "names no file"),
        ("[]", "names no file"),
        ('{"file": 3}', "by strings or lists"),
        ('{"file": null}', "by strings or lists"),
        ('{"file": "src/a.py"', "begins like JSON but is not valid JSON"),
        ("[" * 60_000, "does not exist|not below"),
        ('["a", [[[[["src/a.py"]]]]]]', "by strings or lists|does not exist"),
        (b"\xff\xfe", "not UTF-8"),
        ("src/gone.py", "'src/gone.py', which does not exist; remove the marker if the file is gone"),
        ("src", "which is not a file"),
        ("../other.py", "not below"),
        ("/etc/passwd", "not below"),
        ('"src/\\u0000a.py"', "not below"),
        ('""', "not below"),
        ("x" * 5000, "does not exist"),
        ("src/a.py\n" * 20_000, f"larger than {MAX_MARKER:,} bytes"),
    ],
)
def test_a_marker_that_names_no_file_of_ours_is_told(desk: Desk, content: str | bytes, why: str) -> None:
    desk.mark(content)
    with pytest.raises(BadFile, match=why) as caught:
        desk.read()
    assert "pending/one" in caught.value.path


def test_a_marker_that_is_no_plain_file_is_told(desk: Desk) -> None:
    os.mkfifo(desk.folder / "pipe")
    with pytest.raises(BadFile, match="not a regular file"):
        desk.read()


def test_a_marker_may_not_lead_out_through_a_link(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.py"
    outside.write_text("x")
    (desk.root / "link.py").symlink_to(outside)
    desk.mark("link.py")
    with pytest.raises(BadFile, match="not below"):
        desk.read()


LEAVES = st.text(max_size=5) | st.none()
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.just("files"), inner), max_leaves=8)


@given(st.text(max_size=60) | TREES.map(json.dumps))
def test_any_content_names_files_or_is_refused(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    root = tmp_path_factory.getbasetemp() / "marked"
    root.mkdir(exist_ok=True)
    (root / "m").write_text(content, encoding="utf-8", newline="")
    try:
        (found,) = read_markers(root, root)
    except BadFile:
        return
    assert all((root / name).is_file() for name in found.files)


def test_a_marker_is_removed_when_its_files_are_what_was_verified(desk: Desk) -> None:
    one, two = desk.mark("src/a.py"), desk.mark("src/b.py", "two")
    wanted = desk.wanted()
    assert clear_markers(wanted, desk.snapshot("src/a.py")) == (str(one),)
    assert (one.exists(), two.exists()) == (False, True)
    assert clear_markers(wanted, desk.snapshot("src/a.py", "src/b.py")) == (str(two),)


def test_a_marker_of_two_files_waits_for_both(desk: Desk) -> None:
    path = desk.mark(json.dumps(BOTH))
    wanted = desk.wanted()
    assert clear_markers(wanted, desk.snapshot("src/b.py")) == ()
    assert path.exists()
    assert clear_markers(wanted, desk.snapshot(*BOTH)) == (str(path),)


def test_an_empty_file_has_nothing_to_verify_and_keeps_no_marker_while_it_is_empty(desk: Desk) -> None:
    (desk.root / "src/__init__.py").write_bytes(b"")
    path = desk.mark(json.dumps(["src/a.py", "src/__init__.py"]))
    wanted = desk.wanted()
    snapshot = replace(desk.snapshot("src/a.py"), left_out=(LeftOut(path="src/__init__.py", why="empty"),))
    (desk.root / "src/__init__.py").write_text("import os\n")
    assert clear_markers(wanted, snapshot) == ()
    (desk.root / "src/__init__.py").write_bytes(b"")
    assert clear_markers(wanted, snapshot) == (str(path),)


@pytest.mark.parametrize("change", ["file", "marker", "gone file", "gone marker"])
def test_a_marker_stays_when_anything_was_changed_since(desk: Desk, change: str) -> None:
    path = desk.mark("src/a.py")
    wanted, snapshot = desk.wanted(), desk.snapshot("src/a.py")
    if change == "file":
        (desk.root / "src/a.py").write_text("changed\n")
    elif change == "marker":
        path.write_text("src/a.py\n")
    elif change == "gone file":
        (desk.root / "src/a.py").unlink()
    else:
        path.unlink()
    assert clear_markers(wanted, snapshot) == ()
    assert path.exists() is (change != "gone marker")


def test_a_marker_that_was_noted_as_done_and_is_gone_counts_as_removed_and_one_that_was_changed_does_not(
    desk: Desk,
) -> None:
    """Whoever noted them died over the removal; the user has written one of them anew, and changed a file."""
    gone, kept, anew = desk.mark("src/a.py"), desk.mark("src/b.py", "kept"), desk.mark("src/a.py", "anew")
    wanted, snapshot = desk.wanted(), desk.snapshot(*BOTH)
    noted = done_markers(wanted, snapshot)
    assert set(noted) == {str(gone), str(kept), str(anew)}
    gone.unlink()
    anew.write_text("src/a.py\n")
    (desk.root / "src/b.py").write_text("changed\n")
    assert done_markers(wanted, snapshot) == ()
    assert clear_markers(wanted, snapshot, noted) == (str(gone),)
    assert (kept.exists(), anew.exists()) == (True, True)
