"""The page: static files by the path at which they are served. They speak to the server that sent them only.

Everything that is shown is asked for over the routes of `api`; nothing of a store is in these files.
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from muster.app.kinds import KINDS, PageKind
from muster.reporting.look import TOKENS

MEDIA = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
FOLDER = "/page/"  # of everything but the document itself
FIRST_MODULES = ("app.js", "run.js")  # which are loaded with everything that they import, whatever is opened
ASKED_AGAIN = "no-cache"  # asked for each time; answered 304 as long as it is the same
KEPT = "public, max-age=31536000, immutable"  # of what stands under the version of its content

# Scripts and styles come from this server only, none stands in the document, and nobody else may frame it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAsset:
    """One file of the page, and the headers that it is sent with."""

    body: bytes
    packed: bytes  # the same for browsers that take gzip, which all do
    media: str
    tag: str  # of this content
    caching: str = ASKED_AGAIN

    @property
    def headers(self) -> Mapping[str, str]:
        """What a browser is told besides the kind of the content."""
        return {
            "etag": self.tag,
            "vary": "accept-encoding",
            "cache-control": self.caching,
            "content-security-policy": POLICY,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
        }


def _asset(name: str, body: bytes) -> PageAsset:
    media = MEDIA[PurePosixPath(name).suffix]
    tag = f'"{sha256(body).hexdigest()[:20]}"'
    return PageAsset(body=body, packed=gzip.compress(body, mtime=0), media=f"{media}; charset=utf-8", tag=tag)


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _files(one, f"{prefix}{one.name}/")
        elif PurePosixPath(one.name).suffix in MEDIA:
            yield f"{prefix}{one.name}", one.read_bytes()


def _imported(found: Mapping[str, bytes], names: Iterable[str]) -> dict[str, None]:
    """Return modules with all that they import at once, in the order in which they are needed."""
    seen: dict[str, None] = {}
    for name in names:
        folder = name.rpartition("/")[0]
        inner = re.findall(rb'^(?:import|export) .*?from "\./(.+?)"', found[f"{FOLDER}{name}"], re.MULTILINE)
        if name not in seen:
            seen |= _imported(found, (f"{folder}/{one.decode()}".lstrip("/") for one in inner)) | {name: None}
    return seen


def _document(page: bytes, version: str, modules: Iterable[str]) -> bytes:
    """Return the document with the addresses of this version, and with all modules that the first view needs."""
    links = "".join(f'<link rel="modulepreload" href="{FOLDER}{name}">\n' for name in modules)
    text = page.decode().replace("</head>", f"{links}</head>")
    return text.replace(f'"{FOLDER}', f'"{FOLDER}{version}/').encode()


KINDS_SCRIPT = """// All kinds of work, made from the list of the server.
export const KINDS = {kinds};
const BY_WORKLOAD = new Map(KINDS.map((kind) => [kind.workload, kind]));
const OWN = {own};

/** The kind of a run; of a workload of the user's own little is known. */
export const kindOf = (run) => BY_WORKLOAD.get(run.workload) ?? OWN;
"""


def _kinds_script() -> bytes:
    """Return the module of the page that knows all kinds of work."""
    kinds = [
        {
            "workload": known.kind.workload,
            "words": known.kind.plural,
            "reported": known.kind.report is not None,
            "page": asdict(known.page),
        }
        for known in KINDS
        if known.kind.workload
    ]
    own = {"reported": False, "page": asdict(PageKind())}
    return KINDS_SCRIPT.format(kinds=json.dumps(kinds), own=json.dumps(own)).encode()


def _assets() -> tuple[Mapping[str, PageAsset], Mapping[str, PageAsset]]:
    """Return the files by their names, and those that the document names: under the version of all of them."""
    found = dict(_files(files("muster.dashboard") / "static", FOLDER))
    found[f"{FOLDER}tokens.css"] = TOKENS.encode()
    found[f"{FOLDER}kinds.js"] = _kinds_script()
    version = sha256(b"".join(found[path] for path in sorted(found))).hexdigest()[:12]
    page = _document(found.pop(f"{FOLDER}index.html"), version, _imported(found, FIRST_MODULES))
    named = {path: _asset(path, body) for path, body in found.items()}
    lasting = {
        path.replace(FOLDER, f"{FOLDER}{version}/", 1): replace(asset, caching=KEPT) for path, asset in named.items()
    }
    return {"/": _asset("index.html", page), **named}, lasting


ASSETS, _LASTING = _assets()
SERVED: Mapping[str, PageAsset] = {**ASSETS, **_LASTING}
