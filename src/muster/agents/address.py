"""Addresses of providers: joins a base address with a path, and refuses what would leak a key."""

from ipaddress import ip_address
from urllib.parse import SplitResult, unquote, urlsplit

from muster.agents.origin import split_url
from muster.domain.errors import BadConfiguration

# Names that only a private network can resolve: a container's neighbour, this machine, the local domain.
_PRIVATE_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def join(base_url: str, path: str) -> str:
    """Give the full address, or raise BadConfiguration when the base is no place to send a key to."""
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        _ = parts.port  # raises when it is no number
    except ValueError:
        raise _refused(base_url, "is not an address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise _refused(base_url, "must begin with https:// or http:// and name a host")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadConfiguration("a base address must not carry a name, a password, a query or a fragment")
    if parts.scheme == "http" and not _private(host):
        raise _refused(base_url, "would send the key unencrypted over the internet", "use https://")
    return _joined(parts, path)


def below(base_url: str, url: str) -> str:
    """Give an address that somebody else named, or raise BadConfiguration when the key may not go there."""
    (ours, base), (theirs, parts) = split_url(base_url), split_url(url)
    inside = parts.path.startswith(base.path.rstrip("/") + "/")
    if ours != theirs or not inside or {".", ".."} & set(unquote(parts.path).split("/")):
        shown = f"{theirs.place}{parts.path}"  # a query may hold a secret
        raise BadConfiguration(
            f"{shown!r} is not below the base address {base_url!r}, so the key is not sent there",
            suggestions=("set the base address to the one that the provider itself uses",),
        )
    return url


def _joined(parts: SplitResult, path: str) -> str:
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}{path}"


def _private(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_ENDINGS)
    return address.is_loopback or address.is_private


def _refused(base_url: str, why: str, *suggestions: str) -> BadConfiguration:
    shown = base_url.rpartition("@")[2]  # what stands before it may be a password
    return BadConfiguration(f"the base address {shown!r} {why}", suggestions=suggestions)
