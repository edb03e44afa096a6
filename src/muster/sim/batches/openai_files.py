"""Files of OpenAI: the endpoints under `/v1/files`, and the members of a batch read from its input file."""

from collections.abc import Iterator
from typing import Any

from muster.domain.canonical import Json
from muster.sim.batches.batch import SimBatchMember
from muster.sim.batches.registry import BatchRegistry, File, limit_of, page_after, spell_file
from muster.sim.batches.router import Call, Endpoint, EndpointAnswer, immediately, json_answer
from muster.sim.faults import FaultKind, Op
from muster.sim.options import Options
from muster.sim.protocols.ask import SimRefusal
from muster.sim.protocols.openai import invalid
from muster.sim.request import fields_of
from muster.text import typed

PATH = "/openai/v1/files"
MAX_BYTES = 200 * 1024 * 1024
MAX_LISTED = 10_000
FRAME_BYTES = 64 * 1024  # what a form has around its file, generously


class OpenAIFiles:
    """Answers whoever has files at OpenAI."""

    def __init__(self, registry: BatchRegistry, options: Options) -> None:
        self._registry = registry
        self._most_bytes = options.batch_bytes or MAX_BYTES
        self.most_bytes = self._most_bytes + FRAME_BYTES

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the table of endpoints."""
        one = f"{PATH}/{{id}}"
        return (
            Endpoint(method=b"POST", path=PATH, op=Op.FILE_UPLOAD, work=immediately(self._upload)),
            Endpoint(method=b"GET", path=PATH, op=Op.FILE_LIST, work=immediately(self._list)),
            Endpoint(method=b"GET", path=one, op=Op.FILE_RETRIEVE, work=immediately(self._retrieve)),
            Endpoint(method=b"DELETE", path=one, op=Op.FILE_DELETE, work=immediately(self._delete)),
            Endpoint(method=b"GET", path=f"{one}/content", op=Op.FILE_CONTENT, work=immediately(self._content)),
        )

    def _upload(self, call: Call) -> EndpointAnswer:
        if call.request.oversized:
            raise self._too_large()
        fields = fields_of(call.request)
        upload, purpose = fields.get("file"), fields.get("purpose")
        if upload is None or upload.filename is None:
            raise invalid("file", "expected a file")
        if purpose is None or purpose.content != b"batch":
            raise invalid("purpose", "the rehearsal server takes files for batches only")
        if len(upload.content) > self._most_bytes:
            raise self._too_large()
        file = File(
            id=f"file-sim-{next(self._registry.file_numbers):08d}",
            name=upload.filename,
            purpose="batch",
            created=self._registry.now(),
            lines=(upload.content,),
        )
        self._registry.files.put(call.account, file)
        return json_answer(spell_file(file))

    def _list(self, call: Call) -> EndpointAnswer:
        files = self._registry.files.newest_first(call.account)
        if call.query.get("order") == "asc":
            files.reverse()
        purpose = call.query.get("purpose")
        wanted = [file for file in files if purpose in (None, file.purpose)]
        page = page_after(wanted, limit_of(call.query, MAX_LISTED, MAX_LISTED), call.query.get("after"))
        return json_answer({"object": "list", "data": [spell_file(file) for file in page.things], **page.ends})

    def _retrieve(self, call: Call) -> EndpointAnswer:
        return json_answer(spell_file(self._find(call)))

    def _delete(self, call: Call) -> EndpointAnswer:
        file = self._find(call)
        self._registry.files.drop(call.account, file.id)
        return json_answer({"id": file.id, "object": "file", "deleted": True})

    def _content(self, call: Call) -> EndpointAnswer:
        file = self._find(call)
        if file.batch is not None and file.batch.has_fault(FaultKind.LATE_404, file.id):
            raise _not_found(call.id)
        return EndpointAnswer(lines=file.lines)

    def _find(self, call: Call) -> File:
        file = self._registry.files.get(call.account, call.id)
        if file is None:
            raise _not_found(call.id)
        return file

    def _too_large(self) -> SimRefusal:
        return SimRefusal(413, f"the file is larger than {self._most_bytes} bytes", code="file_too_large", param="file")


def _not_found(name: str) -> SimRefusal:
    return SimRefusal(404, f"No such File object: {name}", param="id")


MAX_PROBLEMS = 100
STEP = 1000  # lines at a time, so that others are served in between


class _InputLine(typed.Struct, gc=False):
    custom_id: str | None = None
    method: str | None = None
    url: str | None = None
    body: typed.Raw = typed.Raw()


class _Body(typed.Struct, gc=False):
    model: Any = None


class Problem(Exception):
    """Why a line, or the whole file, does not do."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param

    def spell(self, line: int | None) -> Json:
        """Spell it as its provider does."""
        return {"code": self.code, "message": self.message, "line": line, "param": self.param}


_read_line = typed.Decoder(_InputLine).decode
_read_body = typed.Decoder(_Body).decode


class InputReader:
    """Reads one file."""

    def __init__(self, endpoint: str, most: int) -> None:
        self._endpoint = endpoint
        self._most = most
        self._seen: set[str] = set()
        self.members: list[SimBatchMember] = []
        self.problems: list[Json] = []
        self.model: str | None = None

    def read(self, content: bytes) -> Iterator[None]:
        """Take the members of a file, and its problems, in small steps; it stops when there are many problems."""
        for number, line in _lines(content):
            self._take(number, line)
            if len(self.problems) >= MAX_PROBLEMS:
                return
            if number % STEP == 0:
                yield
        if not self.members and not self.problems:
            self.problems.append(Problem("empty_file", "The batch input file is empty.").spell(None))
        if len(self.members) > self._most:
            message = f"The batch input file contains too many requests: at most {self._most} are allowed."
            self.problems.append(Problem("too_many_tasks", message).spell(None))

    def _take(self, number: int, line: bytes) -> None:
        try:
            self.members.append(self._member(line))
        except Problem as problem:
            self.problems.append(problem.spell(number))

    def _member(self, line: bytes) -> SimBatchMember:
        try:
            found = _read_line(line)
        except (typed.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Problem("invalid_json_line", f"This line is not a request in JSON: {error}.") from None
        self._check_address(found)
        self._check_model(found)
        return SimBatchMember(self._custom_id(found), found.body)

    def _custom_id(self, found: _InputLine) -> str:
        if not found.custom_id:
            raise _missing("custom_id")
        if found.custom_id in self._seen:
            message = f"The custom_id '{found.custom_id}' is there twice; it must be unique in a batch."
            raise Problem("duplicate_custom_id", message, "custom_id")
        self._seen.add(found.custom_id)
        return found.custom_id

    def _check_address(self, found: _InputLine) -> None:
        if found.method != "POST":
            raise Problem("invalid_method", "The method of this request is not POST.", "method")
        if found.url != self._endpoint:
            raise Problem("invalid_url", "The url of this request is not the endpoint of the batch.", "url")

    def _check_model(self, found: _InputLine) -> None:
        try:
            model = _read_body(found.body).model
        except (typed.DecodeError, UnicodeDecodeError, RecursionError):
            raise _missing("body") from None
        if not isinstance(model, str):
            raise _missing("body.model")
        self.model = self.model or model
        if model != self.model:
            message = f"The model '{model}' is not '{self.model}', which the requests before have."
            raise Problem("mismatched_model", message, "body.model")


def _missing(param: str) -> Problem:
    return Problem("missing_required_parameter", f"Missing required parameter: '{param}'.", param)


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    start, number = 0, 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        number += 1
        line = content[start:end]
        start = end + 1
        if line.strip():
            yield number, line
