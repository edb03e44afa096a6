"""Changes that a verification proposed, made to real files."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from muster.app import open_muster
from muster.domain.errors import BadArgument
from muster.settings import load_settings
from muster.verify.fix import Edit, FileEdits, change, goal_of


def edits(path: Path, *changes: tuple[int, int, str]) -> FileEdits:
    made = tuple(Edit(line=line, end_line=end, text=tuple(text.split("\n"))) for line, end, text in changes)
    return FileEdits(path=path.name, digest=sha256(path.read_bytes()).hexdigest(), edits=made)


async def fixed(folder: Path, *files: FileEdits) -> Any:
    spec = {"root": str(folder), "files": msgspec.to_builtins(files)}
    async with open_muster(settings=load_settings(folder / ".muster", folder=folder, environment={})) as muster:
        return await (await muster.start("fix", spec)).result()


async def test_files_are_changed_and_keep_their_mode_and_what_is_odd_about_them(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    one.chmod(0o755)
    two.write_bytes(b"a\nb\n")
    found = await fixed(tmp_path, edits(one, (1, 1, "A")), edits(two, (2, 2, "B\nC")))
    assert found == {"changed": ["one.py", "two.py"], "left": {}}
    assert (one.read_bytes(), two.read_bytes()) == (b"\xef\xbb\xbfA\r\nb\r\n", b"a\nB\nC\n")
    assert one.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in tmp_path.iterdir()) == [".muster", "one.py", "two.py"]


async def test_a_file_that_is_no_more_what_was_verified_is_left_alone(tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("changed.py", "gone.py", "odd.py")}
    for path in paths.values():
        path.write_bytes(b"a\nb\n")
    paths["odd.py"].write_bytes(b"a\rb\n")
    wanted = [edits(path, (1, 1, "x")) for path in paths.values()]
    paths["changed.py"].write_bytes(b"a\nc\n")
    paths["gone.py"].unlink()
    found = await fixed(tmp_path, *wanted)
    assert found["changed"] == []
    assert "changed after it was verified" in found["left"]["changed.py"]
    assert "cannot be read" in found["left"]["gone.py"]
    assert "unusual line endings" in found["left"]["odd.py"]
    assert paths["changed.py"].read_bytes() == b"a\nc\n"


async def test_nothing_outside_of_the_root_is_changed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    outside = tmp_path / "outside.py"
    outside.write_bytes(b"a\n")
    (tmp_path / "root" / "outside.py").symlink_to(outside)
    found = await fixed(tmp_path / "root", edits(outside, (1, 1, "x")))
    assert "leads out" in found["left"]["outside.py"]
    assert outside.read_bytes() == b"a\n"


def test_a_change_that_was_made_before_a_crash_is_not_made_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"a\nb\n")
    wanted = edits(path, (1, 1, "a\nmore"))
    goal = goal_of(tmp_path, wanted)["digest"]
    assert change(tmp_path, wanted, goal) == ""
    assert change(tmp_path, wanted, goal) == ""
    assert path.read_bytes() == b"a\nmore\nb\n"


async def test_a_spec_that_is_none_is_refused(tmp_path: Path) -> None:
    async with open_muster(settings=load_settings(tmp_path / ".muster", folder=tmp_path, environment={})) as muster:
        with pytest.raises(BadArgument, match="not a valid spec of a fix"):
            await muster.start("fix", {"root": "."})
