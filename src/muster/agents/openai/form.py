"""The form in which a file is uploaded. Pure."""

from muster.agents.base import Parcel
from muster.agents.cargo import Cargo

_FORM = """\
--{boundary}\r
content-disposition: form-data; name="purpose"\r
\r
batch\r
--{boundary}\r
content-disposition: form-data; name="file"; filename="{name}.jsonl"\r
content-type: application/octet-stream\r
\r
"""


def form_of(parcel: Parcel) -> tuple[Cargo, str]:
    """Give a batch as a form with its input file, and the content type that goes with it."""
    # JSON lines hold no bare line break before two dashes, so no boundary can occur in them.
    name = f"muster-{parcel.id}"
    cargo = Cargo(
        parcel.size,
        parcel.pieces(),
        before=_FORM.format(boundary=name, name=name).encode(),
        after=f"\r\n--{name}--\r\n".encode(),
    )
    return cargo, f"multipart/form-data; boundary={name}"
