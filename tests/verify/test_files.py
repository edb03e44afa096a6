"""Which files a verification is about."""

from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.verify.declaration.verification import LeftOut, Limits, Verifier
from muster.verify.sources.files import MAX_TOLD, Bounds, FileSelection, Selected, select
from tests.git.repository import Repository

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.write(".gitignore", "*.log\n")
    made.write("a.py", f"token = '{TOKEN}'\n")
    made.write("src/b.py")
    made.write("src/empty.py", "")
    made.write("src/logo.png", b"\x89PNG\0")
    made.write("web/node_modules/lib/index.js")
    made.write("web/vendor/deep/x.py")
    made.write("uv.lock")
    made.commit()
    return made


async def chosen(folder: Path, *paths: str, bounds: Bounds | None = None) -> Selected:
    return await select(folder, FileSelection(paths=paths), bounds=bounds)


def told(selected: Selected) -> dict[str, str]:
    return {one.path: one.why for one in selected.left_out}


async def test_a_folder_is_what_git_lists_without_what_nobody_here_wrote(repository: Repository) -> None:
    repository.write("src/new.py")
    repository.write("src/debug.log")
    repository.write(".muster/pending/x", "a.py")
    found = await chosen(repository.folder, ".")
    assert found.files == (".gitignore", "a.py", "src/b.py", "src/new.py")
    assert told(found) == {
        "src/empty.py": "empty",
        "src/logo.png": "binary",
        "uv.lock": "generated: a lock file",
        "web/node_modules/": "vendored",
        "web/vendor/": "vendored",
    }
    assert found.root == found.source == repository.folder.resolve()
    assert found.redacted == 1
    assert TOKEN not in repr(found)
    sent = "token = '[redacted:github_token:1]'\n"
    assert found.bytes == len("*.log\n") + len(sent) + 2 * len("x = 1\n")


async def test_files_and_folders_are_told_from_the_root_however_they_were_named(repository: Repository) -> None:
    found = await chosen(repository.folder / "src", "../a.py", "b.py", str(repository.folder / "a.py"), ".")
    assert found.files == ("a.py", "src/b.py")
    assert (await chosen(repository.folder, "web/vendor")).files == ("web/vendor/deep/x.py",)


async def test_a_folder_behind_a_link_is_the_same_repository(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "same").symlink_to(repository.folder)
    found = await chosen(tmp_path / "same", "a.py", str(tmp_path / "same" / "src"))
    assert found.files == ("a.py", "src/b.py")


@pytest.mark.parametrize(
    ("name", "why"), [("src/empty.py", "empty"), ("uv.lock", "a lock file"), ("src/logo.png", "binary")]
)
async def test_a_named_file_that_would_be_left_out_is_an_error(repository: Repository, name: str, why: str) -> None:
    with pytest.raises(BadArgument, match=why):
        await chosen(repository.folder, name)


@pytest.mark.parametrize("name", ["../outside.py", "/etc/passwd", "", "link.py", "a\0b"])
async def test_a_path_out_of_the_root_is_an_error(repository: Repository, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.py").write_text("x")
    (repository.folder / "link.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(BadArgument, match="is not below"):
        await chosen(repository.folder, "a.py", name)


async def test_a_path_that_does_not_exist_is_an_error(repository: Repository) -> None:
    with pytest.raises(NotFound, match=r"no such file or folder: nothing\.py"):
        await chosen(repository.folder, "nothing.py")
    with pytest.raises(BadFile):
        await chosen(repository.folder, "x" * 5000)


async def test_exactly_one_way_of_choosing_is_given(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="no files given") as caught:
        await select(tmp_path, FileSelection())
    assert caught.value.suggestions == ("use paths, --changed [REF], --staged or --pending",)
    with pytest.raises(BadArgument, match="in more than one way"):
        await select(tmp_path, FileSelection(paths=("a",), changed=True))
    with pytest.raises(BadArgument, match="the changed files were not asked for"):
        await select(tmp_path, FileSelection(paths=("a",), ref="main"))
    with pytest.raises(BadArgument, match="need a folder"):
        await select(tmp_path, FileSelection(staged=True))


async def test_changed_files_are_selected(repository: Repository, tmp_path: Path) -> None:
    repository.git("tag", "before")
    repository.write("src/b.py", "y = 2\n")
    repository.commit()
    repository.write("new.py")
    repository.write("src/logo.png", "\0")
    repository.write(".muster/muster.db", "x")
    found = await select(repository.folder, FileSelection(changed=True))
    assert (found.files, told(found)) == (("new.py",), {"src/logo.png": "binary"})
    assert (await select(repository.folder, FileSelection(changed=True, ref="before"))).files == ("new.py", "src/b.py")


async def test_a_file_behind_a_link_that_leads_out_is_left_out(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repository.folder / "src").rename(tmp_path / "elsewhere" / "src")
    (repository.folder / "src").symlink_to(tmp_path / "elsewhere" / "src")
    found = await chosen(repository.folder, ".")
    assert "src/b.py" not in found.files
    assert told(found)["src/b.py"] == "a symbolic link that leads out"


async def test_staged_contents_are_read_from_where_they_were_written(repository: Repository, tmp_path: Path) -> None:
    repository.write("src/b.py", f"k = '{TOKEN}'\n")
    repository.git("add", "--all")
    repository.write("src/b.py", "later\n")
    found = await select(repository.folder, FileSelection(staged=True), into=tmp_path / "into")
    assert (found.files, found.source, found.redacted) == (("src/b.py",), tmp_path / "into", 1)
    assert found.root == repository.folder.resolve()
    assert TOKEN in (tmp_path / "into/src/b.py").read_text()


async def test_markers_say_what_is_pending(repository: Repository) -> None:
    assert (await select(repository.folder, FileSelection(pending=Path("marks")))).files == ()
    repository.write("marks/one", "src/b.py\nsrc/empty.py")
    repository.write("marks/two", '{"files": ["a.py", "src/b.py"]}')
    found = await select(repository.folder / "src", FileSelection(pending=Path("marks")))
    assert (found.files, told(found)) == (("a.py", "src/b.py"), {"src/empty.py": "empty"})
    assert [marker.files for marker in found.markers] == [("src/b.py", "src/empty.py"), ("a.py", "src/b.py")]


async def test_a_folder_in_no_repository_is_walked(tmp_path: Path) -> None:
    names = ("a.py", "sub/b.py", ".hidden.py", ".tool/c.py", "node_modules/d.js", "sub/__pycache__/e.pyc", "dist/f.js")
    for name in (*names, "env/lib/g.py", ".muster/muster.db"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")
    (tmp_path / "env/pyvenv.cfg").touch()
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = await chosen(tmp_path, ".")
    assert (found.root, found.files) == (tmp_path.resolve(), (".hidden.py", "a.py", "sub/b.py"))
    assert told(found) == {
        ".tool/": "a hidden folder",
        "dist/": "generated by programs",
        "env/": "a virtual environment",
        "link.py": "a symbolic link",
        "loop/": "a symbolic link",
        "node_modules/": "vendored",
        "sub/__pycache__/": "generated by programs",
    }
    assert (await chosen(tmp_path, ".tool", "dist/f.js")).files == (".tool/c.py", "dist/f.js")


async def test_more_bytes_than_allowed_are_refused_with_the_numbers(repository: Repository) -> None:
    with pytest.raises(BadArgument, match=r"the first 2 of 6 files have \d+ bytes; the maximum is 20") as caught:
        await chosen(repository.folder, ".", bounds=Bounds(limits=Limits(total_bytes=20)))
    assert "total_bytes" in caught.value.suggestions[1]


async def test_an_unreadable_file_stops_everything(repository: Repository) -> None:
    repository.write("odd\nname.py")
    with pytest.raises(BadFile, match=r"odd\\nname\.py: its name has a control character"):
        await chosen(repository.folder, ".")
    with pytest.raises(BadFile):
        await select(repository.folder, FileSelection(changed=True))


async def test_a_key_in_the_name_of_a_file_is_refused_and_not_told(repository: Repository) -> None:
    key = "AKIA" + "Q7RJ2M5XZT4KW9PB"
    repository.write(f"src/{key}/a.py", "x = 1\n")
    with pytest.raises(BadFile, match=r"its name holds a secret \(aws_key\)") as caught:
        await chosen(repository.folder, ".")
    assert key not in str(caught.value)
    repository.write("src/password_token_key.py", "x = 1\n")
    await chosen(repository.folder, "src/password_token_key.py")


async def test_what_is_left_out_is_told_once(repository: Repository) -> None:
    found = await chosen(repository.folder, ".", "src", "web")
    assert found.left_out.count(LeftOut(path="src/logo.png", why="binary")) == 1
    assert found.left_out.count(LeftOut(path="web/vendor/", why="vendored")) == 1


async def test_code_that_nobody_can_be_shown_stops_everything_and_is_named(repository: Repository) -> None:
    repository.write("large.py", "x = 1\n" * 400_000)
    repository.write("wide.py", "x = '" + "y" * 30_000 + "'\n")
    repository.write("sixteen.py", "x = 1\n".encode("utf-16"))
    repository.write("odd.py", "x = 1\0\n")
    repository.write("bundle.min.js", "x=1;" * 10_000)
    with pytest.raises(BadArgument, match="4 of the files cannot be verified") as caught:
        await chosen(repository.folder, ".")
    for told in ("large.py (larger than", "wide.py (has a line of", "sixteen.py (UTF-16", "odd.py (binary, although"):
        assert told in caught.value.message
    assert "exclude: [GLOB, …]" in caught.value.suggestions[0]
    repository.git("add", "--all")
    with pytest.raises(BadArgument, match="4 of the files"):
        await select(repository.folder, FileSelection(staged=True), into=repository.folder / ".muster/into")


async def test_a_message_about_many_files_is_bounded(repository: Repository) -> None:
    for number in range(MAX_TOLD + 3):
        repository.write(f"bad{number:02}.py", "\0")
    with pytest.raises(BadArgument, match=r"bad09\.py \(binary, although its name is that of code\), and 3 more"):
        await chosen(repository.folder, ".")


async def test_what_is_excluded_is_left_out_before_it_is_read(repository: Repository) -> None:
    repository.write("data/odd.py", "\0")
    bounds = Bounds(exclude=("data/*", "b.py"))
    found = await chosen(repository.folder, ".", bounds=bounds)
    assert found.files == (".gitignore", "a.py")
    assert {path for path, why in told(found).items() if why == "excluded in verify.yaml"} == {
        "data/odd.py",
        "src/b.py",
    }
    with pytest.raises(BadArgument, match=r"src/b\.py cannot be verified: excluded in verify\.yaml"):
        await chosen(repository.folder, "src/b.py", bounds=bounds)


async def test_what_no_agent_looks_at_may_be_anything_unless_it_was_named(repository: Repository) -> None:
    repository.write("data.sql", "\0")
    bounds = Bounds(asked=(Verifier(name="one", include=("*.py",)),), limits=Limits(total_bytes=60))
    repository.write("notes.txt", "word " * 100)
    found = await chosen(repository.folder, ".", bounds=bounds)
    assert found.files == ("a.py", "src/b.py")
    nobody = {path for path, why in told(found).items() if why == "no agent handles such files"}
    assert nobody == {".gitignore", "data.sql", "notes.txt"}
    with pytest.raises(BadArgument, match=r"notes\.txt cannot be verified: no agent handles"):
        await chosen(repository.folder, "a.py", "notes.txt", bounds=bounds)
