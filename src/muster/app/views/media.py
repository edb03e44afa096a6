"""An image or a document that a run shows, with its bytes."""

from base64 import b64encode

from muster.domain.media import MediaFile
from muster.text.views import View


class MediaView(View):
    """An image or a document: what it is, and its bytes as base64."""

    digest: str
    type: str
    size: int
    data: str


def media_view(file: MediaFile) -> MediaView:
    """Return an image or a document as it is shown."""
    return MediaView(digest=file.digest, type=file.type, size=file.size, data=b64encode(file.data).decode())
