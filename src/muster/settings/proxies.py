"""Proxies and certificates, as the usual variables name them."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from muster.domain.errors import BadConfiguration
from muster.domain.network import CERTIFICATE_DIR, CERTIFICATE_FILE, Network, Proxy, ProxyRules, parse_exceptions

PROXY_VARIABLES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[A-Za-z0-9._~:-]+")  # a name, or an address of numbers
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def read_network(variables: Mapping[str, str]) -> Network:
    """Return what the variables say; a proxy that cannot be used is kept as the error that says why."""
    _, no_proxy = _first(variables, "no_proxy", "NO_PROXY")
    return Network(
        proxies=ProxyRules(
            https=_proxy(variables, "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
            http=_proxy(variables, "http_proxy", *_upper_http(variables), "all_proxy", "ALL_PROXY"),
            exceptions=parse_exceptions(no_proxy),
        ),
        no_proxy=no_proxy,
        certificate_file=variables.get(CERTIFICATE_FILE, ""),
        certificate_dir=variables.get(CERTIFICATE_DIR, ""),
    )


def _upper_http(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Leave HTTP_PROXY out where a CGI server runs us: there it is a header that a stranger sent."""
    return () if "REQUEST_METHOD" in variables else ("HTTP_PROXY",)


def _first(variables: Mapping[str, str], *names: str) -> tuple[str, str]:
    """Return the first variable that is set, with its value; an empty one means: none of them."""
    name = next((name for name in names if name in variables), "")
    return name, variables.get(name, "").strip()


def _proxy(variables: Mapping[str, str], *names: str) -> Proxy | BadConfiguration | None:
    name, value = _first(variables, *names)
    try:
        return parse_proxy(name, value) if value else None
    except BadConfiguration as error:
        return error


def parse_proxy(variable: str, value: str) -> Proxy:
    """Read the address of a proxy, or raise BadConfiguration without showing what may be a password."""
    parts, port = _split(variable, value)
    if parts.scheme.startswith("socks"):
        raise _refused(variable, "names a SOCKS proxy, which is not supported", "name an HTTP proxy: http://HOST:PORT")
    if parts.scheme not in _DEFAULT_PORTS:
        raise _refused(variable, "names a proxy of an unknown kind; it must begin with http:// or https://")
    host = _ascii(parts.hostname or "")
    if not _HOST.fullmatch(host) or parts.path not in ("", "/") or parts.query or parts.fragment or port == 0:
        raise _refused(variable, "is not the address of a proxy")
    port = port or _DEFAULT_PORTS[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    return Proxy(
        place=f"{parts.scheme}://{shown}:{port}",
        host=host,
        port=port,
        secure=parts.scheme == "https",
        variable=variable,
        authorization=_authorization(parts),
    )


def _split(variable: str, value: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(value if _SCHEME.match(value) else f"http://{value}")
        return parts, parts.port
    except ValueError:
        raise _refused(variable, "is not the address of a proxy") from None


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return ""


def _authorization(parts: SplitResult) -> str:
    if "@" not in parts.netloc:
        return ""
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {_base64(pair)}"


def _base64(pair: str) -> str:
    return b64encode(pair.encode("utf-8", "surrogateescape")).decode()


def _refused(variable: str, why: str, *suggestions: str) -> BadConfiguration:
    remedy = suggestions or ("write it like http://HOST:PORT, or http://NAME:PASSWORD@HOST:PORT",)
    return BadConfiguration(f"{variable} {why}", suggestions=(*remedy, f"or unset {variable}"))


def proxy_secrets(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield what of proxies must never be written: addresses with a password, and the password in every spelling."""
    for name in PROXY_VARIABLES:
        value = variables.get(name, "").strip()
        user, at, _ = value.rpartition("@")
        if not at:
            continue
        pair = _SCHEME.sub("", user, count=1)
        yield value
        yield _base64(unquote(pair if ":" in pair else f"{pair}:"))
        if password := pair.partition(":")[2]:
            yield password
            yield unquote(password)
