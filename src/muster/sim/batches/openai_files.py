"""Files of OpenAI: the endpoints under `/v1/files`."""

from muster.sim.batches.desk import Call, Endpoint, EndpointAnswer, immediately, say_json
from muster.sim.batches.multipart import fields_of
from muster.sim.batches.registry import BatchRegistry, File, limit_of, page_after, spell_file
from muster.sim.faults import FaultKind, Op
from muster.sim.options import Options
from muster.sim.protocols.ask import SimRefusal
from muster.sim.protocols.openai import invalid

PATH = "/openai/v1/files"
MOST_BYTES = 200 * 1024 * 1024
MOST_LISTED = 10_000
FRAME_BYTES = 64 * 1024  # what a form has around its file, generously


class OpenAIFiles:
    """Answers whoever has files at OpenAI."""

    def __init__(self, office: BatchRegistry, options: Options) -> None:
        self._office = office
        self._most_bytes = options.batch_bytes or MOST_BYTES
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
            id=f"file-sim-{next(self._office.file_numbers):08d}",
            name=upload.filename,
            purpose="batch",
            created=self._office.now(),
            lines=(upload.content,),
        )
        self._office.files.put(call.account, file)
        return say_json(spell_file(file))

    def _list(self, call: Call) -> EndpointAnswer:
        files = self._office.files.newest_first(call.account)
        if call.query.get("order") == "asc":
            files.reverse()
        purpose = call.query.get("purpose")
        wanted = [file for file in files if purpose in (None, file.purpose)]
        page = page_after(wanted, limit_of(call.query, MOST_LISTED, MOST_LISTED), call.query.get("after"))
        return say_json({"object": "list", "data": [spell_file(file) for file in page.things], **page.ends})

    def _retrieve(self, call: Call) -> EndpointAnswer:
        return say_json(spell_file(self._find(call)))

    def _delete(self, call: Call) -> EndpointAnswer:
        file = self._find(call)
        self._office.files.drop(call.account, file.id)
        return say_json({"id": file.id, "object": "file", "deleted": True})

    def _content(self, call: Call) -> EndpointAnswer:
        file = self._find(call)
        if file.batch is not None and file.batch.strikes(FaultKind.LATE_404, file.id):
            raise _not_found(call.id)
        return EndpointAnswer(lines=file.lines)

    def _find(self, call: Call) -> File:
        file = self._office.files.get(call.account, call.id)
        if file is None:
            raise _not_found(call.id)
        return file

    def _too_large(self) -> SimRefusal:
        return SimRefusal(413, f"the file is larger than {self._most_bytes} bytes", code="file_too_large", param="file")


def _not_found(name: str) -> SimRefusal:
    return SimRefusal(404, f"No such File object: {name}", param="id")
