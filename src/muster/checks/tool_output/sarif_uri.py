"""Where a result of SARIF is: an address, maybe below a base, as a path."""

from collections.abc import Mapping
from urllib.parse import unquote, urljoin, urlsplit

from muster.domain.canonical import Json

_DEEPEST = 10  # bases on bases


def path_of(location: Mapping[str, Json], bases: Mapping[str, Json]) -> str:
    """Give the path of a file; one that is not told, or is somewhere else than on this disk, is empty."""
    uri = str(location.get("uri") or "")
    if not uri:
        return ""
    try:
        uri = _below(uri, str(location.get("uriBaseId") or ""), bases)
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme not in ("", "file"):
        return ""
    return unquote(parts.path if parts.scheme else uri.partition("#")[0])


def _below(uri: str, name: str, bases: Mapping[str, Json]) -> str:
    """Put an address below its base; a base that has no address of its own is the root."""
    for _ in range(_DEEPEST):
        base = bases.get(name)
        if not isinstance(base, Mapping) or urlsplit(uri).scheme:
            break
        if base.get("uri"):
            uri = urljoin(str(base["uri"]), uri)
        name = str(base.get("uriBaseId") or "")
    return uri
