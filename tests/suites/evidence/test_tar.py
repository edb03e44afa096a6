"""Tar files in which every byte is determined."""

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.suites.evidence import archive
from muster.suites.evidence.archive import BLOCK, TarWriter, header, scan
from muster.suites.evidence.layout import MAX_MEMBERS, EvidenceFault

NAMES = st.sampled_from(["a.txt", "cases.jsonl", "prompts/0001.txt", "prompts/0002.txt", "x-y.dsse.json"])


def written(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    writer = TarWriter(file)
    for name, data in files.items():
        writer.put(name, data)
    writer.close()
    return file.getvalue()


@given(st.dictionaries(NAMES, st.binary(max_size=1500)))
def test_what_was_written_is_read_back_here_and_by_every_other_tar(files: dict[str, bytes]) -> None:
    data = written(files)
    found = scan(io.BytesIO(data), dict.fromkeys(files, 2000))
    assert found.kept == files
    assert [member.name for member in found.members] == list(files)
    assert all(data[member.start :][: member.size] == files[member.name] for member in found.members)
    with tarfile.open(fileobj=io.BytesIO(data), errorlevel=2) as other:
        members = other.getmembers()
        assert {member.name: (other.extractfile(member) or io.BytesIO()).read() for member in members} == files
        assert {(m.mtime, m.uid, m.gid, m.mode, m.uname, m.type) for m in members} <= {(0, 0, 0, 0o644, "", b"0")}


def test_a_header_is_what_others_write_too() -> None:
    info = tarfile.TarInfo("prompts/0001.txt")
    info.size = 70_000
    assert header("prompts/0001.txt", 70_000) == info.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    "name",
    ["../evil.txt", "/etc/passwd", "a/../b.txt", "prompts/../a.txt", ".hidden", "a", "prompts/1.txt", "ä.txt", ""],
)
def test_a_name_that_is_none_of_ours_is_refused(name: str) -> None:
    info = tarfile.TarInfo(name)
    data = info.tobuf(tarfile.USTAR_FORMAT, encoding="utf-8") + archive.END
    with pytest.raises(EvidenceFault):
        scan(io.BytesIO(data), {})


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_folders_and_devices_are_refused(kind: bytes) -> None:
    info = tarfile.TarInfo("a.txt")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(EvidenceFault):
        scan(io.BytesIO(info.tobuf(tarfile.USTAR_FORMAT) + archive.END), {})


def test_a_file_that_is_there_twice_is_refused() -> None:
    one = written({"a.txt": b"one"})[: -len(archive.END)]
    with pytest.raises(EvidenceFault, match="twice"):
        scan(io.BytesIO(one + one + archive.END), {})


def test_a_size_that_is_not_there_takes_no_memory() -> None:
    data = header("statement.dsse.json", archive.MAX_BYTES) + b"short"
    with pytest.raises(EvidenceFault, match="larger than 100"):
        scan(io.BytesIO(data), {"statement.dsse.json": 100})
    with pytest.raises(EvidenceFault, match="cut short"):
        scan(io.BytesIO(data), {})


@pytest.mark.parametrize("end", [b"", bytes(BLOCK), bytes(3 * BLOCK), archive.END + b"x", bytes(BLOCK) + b"\1" * BLOCK])
def test_an_end_of_another_kind_is_refused(end: bytes) -> None:
    with pytest.raises(EvidenceFault):
        scan(io.BytesIO(written({"a.txt": b"one"})[: -len(archive.END)] + end), {})


def test_an_archive_of_countless_files_is_refused() -> None:
    files = {f"file-{number}.txt": b"" for number in range(MAX_MEMBERS + 1)}
    with pytest.raises(EvidenceFault, match="more than 10,000 files"):
        scan(io.BytesIO(written(files)), {})
