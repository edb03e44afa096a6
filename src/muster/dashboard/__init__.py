"""The page: static files by the path at which they are served. They speak to the server that sent them only.

Everything that is shown is asked for over the routes of `api`; nothing of a store is in these files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from muster.reporting.look import TOKENS

MEDIA = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
FOLDER = "/page/"  # of everything but the document itself

# Scripts and styles come from this server only, none stands in the document, and nobody else may frame it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAsset:
    """One file of the page, and the headers that it is sent with."""

    body: bytes
    media: str
    tag: str  # of this content

    @property
    def headers(self) -> Mapping[str, str]:
        """What a browser is told besides the kind of the content."""
        return {
            "etag": self.tag,
            "cache-control": "no-cache",  # asked for again each time; answered 304 as long as it is the same
            "content-security-policy": POLICY,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
        }


def _asset(name: str, body: bytes) -> PageAsset:
    media = MEDIA[PurePosixPath(name).suffix]
    return PageAsset(body=body, media=f"{media}; charset=utf-8", tag=f'"{sha256(body).hexdigest()[:20]}"')


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _files(one, f"{prefix}{one.name}/")
        elif PurePosixPath(one.name).suffix in MEDIA:
            yield f"{prefix}{one.name}", one.read_bytes()


def _assets() -> dict[str, PageAsset]:
    found = dict(_files(files("muster.dashboard") / "static", FOLDER))
    found["/"] = found.pop(f"{FOLDER}index.html")
    found[f"{FOLDER}tokens.css"] = TOKENS.encode()
    return {path: _asset("index.html" if path == "/" else path, body) for path, body in found.items()}


ASSETS: Mapping[str, PageAsset] = _assets()
