"""Files: uploaded, listed, read back, deleted; forms in every shape that clients send."""

import openai
import pytest

from muster.sim.options import Options
from muster.sim.server import Server, serve
from tests.sim.batch_wire import OPENAI_FILES, call, content, form, jsonl, lines, openai_at, submit
from tests.sim.wire import Answer, ask, dial, message, spell

CONTENT = b'{"a": "b"}\r\n\r\n--xyz is not at the beginning of a form\r\n{}\n\n--xy'


async def post(server: Server, body: bytes, kind: str = "multipart/form-data; boundary=xyz") -> Answer:
    return await call(server, "POST", OPENAI_FILES, body, content_type=kind)


async def read_back(server: Server, answer: Answer) -> bytes:
    return (await call(server, "GET", f"{OPENAI_FILES}/{answer.json()['id']}/content")).body


async def test_a_file_lives_from_upload_to_deletion() -> None:
    async with openai_at() as (client, _):
        created = await client.files.create(file=("in.jsonl", CONTENT), purpose="batch")
        assert (created.bytes, created.filename, created.purpose) == (len(CONTENT), "in.jsonl", "batch")
        assert await client.files.retrieve(created.id) == created
        assert (await client.files.content(created.id)).content == CONTENT
        deleted = await client.files.delete(created.id)
        assert (deleted.id, deleted.deleted) == (created.id, True)
        with pytest.raises(openai.NotFoundError):
            await client.files.retrieve(created.id)
        with pytest.raises(openai.NotFoundError):
            await client.files.delete(created.id)


async def test_files_are_listed_newest_first_and_paged_through() -> None:
    async with openai_at() as (client, _):
        names = [(await client.files.create(file=("f", b"x"), purpose="batch")).id for _ in range(5)]
        assert [file.id async for file in client.files.list()] == names[::-1]
        assert [file.id async for file in client.files.list(limit=2)] == names[::-1]
        assert [file.id async for file in client.files.list(limit=2, order="asc")] == names


async def test_the_files_of_a_batch_are_listed_by_their_purpose() -> None:
    async with openai_at() as (client, _):
        done = await client.batches.retrieve((await submit(client, lines(3))).id)
        [output] = [file async for file in client.files.list(purpose="batch_output")]
        assert output.id == done.output_file_id
        assert output.bytes == len((await client.files.content(output.id)).content)
        await client.files.delete(output.id)
        with pytest.raises(openai.NotFoundError):
            await content(client, output.id)


@pytest.mark.parametrize("query", ["limit=0", "limit=10001", "after=nobody"])
async def test_a_list_that_makes_no_sense_is_refused(query: str) -> None:
    async with serve() as server:
        assert (await call(server, "GET", f"{OPENAI_FILES}?{query}")).status == 400


@pytest.mark.parametrize(
    ("kind", "boundary"),
    [
        ("multipart/form-data; boundary=xyz", "xyz"),
        ('multipart/form-data; boundary="xyz"', "xyz"),
        ('Multipart/Form-Data; charset=utf-8; Boundary="a b:c"', "a b:c"),
    ],
)
async def test_boundaries_may_be_quoted(kind: str, boundary: str) -> None:
    async with serve() as server:
        answer = await post(server, form(b"content", boundary), kind)
        assert (answer.status, await read_back(server, answer)) == (200, b"content")


@pytest.mark.parametrize("data", [b"", b"\r\n", b"a\r\nb\r\n", b"\r\n--xy\r\n--\r\nxyz", CONTENT])
async def test_every_byte_of_a_file_is_kept(data: bytes) -> None:
    async with serve() as server:
        answer = await post(server, form(data, "boundary"), "multipart/form-data; boundary=boundary")
        assert await read_back(server, answer) == data


async def test_what_comes_before_the_first_boundary_does_not_count() -> None:
    async with serve() as server:
        answer = await post(server, b"preamble\r\n" + form(b"content") + b"epilogue")
        assert await read_back(server, answer) == b"content"


async def test_an_upload_may_come_in_chunks() -> None:
    data = form(jsonl(lines(3)))
    async with serve() as server, dial(server) as connection:
        head = spell(
            b"",
            OPENAI_FILES,
            content_length="",
            transfer_encoding="chunked",
            content_type="multipart/form-data; boundary=xyz",
        )
        connection.writer.write(head)
        for start in range(0, len(data), 7):
            part = data[start : start + 7]
            connection.writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        connection.writer.write(b"0\r\n\r\n")
        answer = await connection.answer()
        assert await read_back(server, answer) == jsonl(lines(3))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (form(b"x"), "application/json"),
        (form(b"x"), "multipart/form-data"),
        (form(b"x"), "multipart/mixed; boundary=xyz"),
        (form(b"x", "other"), "multipart/form-data; boundary=xyz"),
        (form(b"x")[:-9], "multipart/form-data; boundary=xyz"),
        (b"--xyz\r\nno head\r\n--xyz--", "multipart/form-data; boundary=xyz"),
        (b"--xyz\r\nA: b\r\n\r\nx\r\n--xyz--", "multipart/form-data; boundary=xyz"),
        (b"", "multipart/form-data; boundary=xyz"),
        (b"--xyz--\r\n", "multipart/form-data; boundary=xyz"),
        (form(b"x", purpose="fine-tune"), "multipart/form-data; boundary=xyz"),
        (form(b"x").replace(b'; filename="in.jsonl"', b""), "multipart/form-data; boundary=xyz"),
    ],
)
async def test_a_wrong_form_is_refused(body: bytes, kind: str) -> None:
    async with serve() as server:
        answer = await post(server, body, kind)
        assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")
        assert (await call(server, "GET", OPENAI_FILES)).json()["data"] == []


async def test_a_file_that_is_too_large_is_refused() -> None:
    async with serve(Options(batch_bytes=1000)) as server:
        taken, refused = await post(server, form(b"x" * 1000)), await post(server, form(b"x" * 1001))
        huge = await post(server, form(b"x" * 1_000_000))
    assert (taken.status, refused.status, huge.status) == (200, 413, 413)


async def test_a_file_may_be_larger_than_other_requests() -> None:
    async with serve(Options(max_body_bytes=3000)) as server:
        assert (await ask(server, message("x" * 5000))).status == 413
        assert (await post(server, form(b"x" * 500_000))).status == 200


async def test_a_large_file_is_sent_in_pieces() -> None:
    data = b"0123456789" * 100_000
    async with serve() as server, dial(server) as connection:
        answer = await post(server, form(data))
        connection.writer.write(spell(b"", f"{OPENAI_FILES}/{answer.json()['id']}/content", "GET"))
        await connection.head()
        pieces = [piece async for piece in connection.chunks()]
    assert len(pieces) > 10
    assert b"".join(pieces) == data
