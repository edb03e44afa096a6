"""Files that a suite names are found near it, and nowhere else."""

from pathlib import Path

import pytest

from muster.suites.format.reading import MAX_BYTES, SuiteFiles
from muster.text.document_tree import Unreadable
from tests.suites.format.suites import write


def project(tmp_path: Path, fence: str | None = ".git") -> Path:
    """Make a project with a suite two folders below its root, and give the suite's folder."""
    folder = tmp_path / "work" / "project" / "fixtures" / "greeter"
    folder.mkdir(parents=True)
    if fence:
        (tmp_path / "work" / "project" / fence).mkdir()
    return folder


def refusal(folder: Path, name: str) -> str:
    with pytest.raises(Unreadable) as caught:
        SuiteFiles(folder).text(name)
    return caught.value.message


def test_a_file_is_looked_for_beside_the_suite_first(tmp_path: Path) -> None:
    folder = project(tmp_path)
    write(folder, "near", "golden/a.txt")
    write(folder.parent.parent, "far", "golden/a.txt")
    assert SuiteFiles(folder).text("golden/a.txt") == "near"
    assert SuiteFiles(folder).text("./golden//a.txt") == "near"


def test_then_above_it_up_to_the_root_of_the_project(tmp_path: Path) -> None:
    folder = project(tmp_path)
    write(folder.parent.parent, "root", "golden/a.txt")
    write(tmp_path / "work", "outside", "outside.txt")
    assert SuiteFiles(folder).text("golden/a.txt") == "root"
    assert "there is no file outside.txt" in refusal(folder, "outside.txt")


def test_then_below_it_without_the_folders_that_it_no_longer_is_in(tmp_path: Path) -> None:
    folder = project(tmp_path)
    write(folder, "moved", "golden/a.txt")
    assert SuiteFiles(folder).text("old/place/greeter/golden/a.txt") == "moved"


def test_without_a_project_a_few_folders_above_are_looked_into(tmp_path: Path) -> None:
    folder = project(tmp_path, fence=None)
    write(tmp_path / "work", "near enough", "a.txt")
    write(tmp_path, "too far", "b.txt")
    assert SuiteFiles(folder).text("a.txt") == "near enough"
    assert "there is no file b.txt" in refusal(folder, "b.txt")


def test_the_folder_one_works_in_is_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path, fence=None)
    write(tmp_path, "root", "a.txt")
    monkeypatch.chdir(tmp_path)
    assert SuiteFiles(folder).text("a.txt") == "root"
    monkeypatch.chdir(folder)
    assert "there is no file a.txt" in refusal(folder, "a.txt")


def test_what_is_hidden_is_found_beside_the_suite_only(tmp_path: Path) -> None:
    folder = project(tmp_path)
    write(folder.parent.parent, "secret", ".secrets/key")
    assert "there is no file .secrets/key" in refusal(folder, ".secrets/key")
    write(folder, "own", ".golden/a.txt")
    assert SuiteFiles(folder).text(".golden/a.txt") == "own"


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.txt", "golden/../../a.txt", "a\0b"])
def test_no_name_leads_out(tmp_path: Path, name: str) -> None:
    assert "may not be named" in refusal(project(tmp_path), name)


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "golden").mkdir()
    assert "names no file" in refusal(folder, ".")
    assert "there is no file golden" in refusal(folder, "golden")
    assert "there is no file" in refusal(folder, "x" * 5000)


def test_a_link_may_not_lead_out_of_where_it_was_found(tmp_path: Path) -> None:
    folder = project(tmp_path)
    outside = write(tmp_path, "secret", "secret.txt")
    (folder / "link.txt").symlink_to(outside)
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    (folder / "inside.txt").symlink_to(write(folder, "fine", "golden/a.txt"))
    assert "a link that leads out of" in refusal(folder, "link.txt")
    assert "there is no file loop.txt" in refusal(folder, "loop.txt")
    assert SuiteFiles(folder).text("inside.txt") == "fine"


def test_a_file_is_bounded_and_text(tmp_path: Path) -> None:
    folder = project(tmp_path)
    write(folder, "x" * (MAX_BYTES + 1), "large.txt")
    write(folder, b"a\nb\xff", "bytes.txt")
    write(folder, b"a\n\xc3", "cut.txt")
    assert refusal(folder, "large.txt").startswith("large.txt: larger than 4,000,000 bytes")
    assert refusal(folder, "bytes.txt").startswith("bytes.txt:2: not UTF-8")
    assert refusal(folder, "cut.txt").startswith("cut.txt:2: not UTF-8")


def test_a_file_that_many_name_is_read_once(tmp_path: Path) -> None:
    folder = project(tmp_path)
    path = write(folder, "first", "a.txt")
    files = SuiteFiles(folder)
    assert files.text("a.txt") == "first"
    path.unlink()
    assert files.text("a.txt") == "first"
    for index in range(100):
        write(folder, str(index), f"{index}.txt")
        assert files.text(f"{index}.txt") == str(index)


def test_a_command_is_meant_from_the_folder_that_has_its_file(tmp_path: Path) -> None:
    folder = project(tmp_path)
    root = folder.parent.parent
    write(root, "", "scripts/judge.py")
    write(folder, "", "own.py")
    files = SuiteFiles(folder)
    assert files.home_of(["python3", "scripts/judge.py"]) == root.resolve()
    assert files.home_of(["python3", "own.py"]) == folder.resolve()
    assert files.home_of(["python3", "-m", "judge", "../../etc/passwd"]) == folder.resolve()
