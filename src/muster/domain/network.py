"""How connections leave this machine: which proxy they go through and which certificates they trust. Pure values."""

import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from muster.domain.errors import BadConfiguration

CERTIFICATE_FILE, CERTIFICATE_DIR = "SSL_CERT_FILE", "SSL_CERT_DIR"  # the variables, for messages

_PORT = re.compile(r"[0-9]{1,5}")

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A server that connections go through; what it is told of its user is never shown."""

    place: str  # "http://proxy.example:3128", for messages; without name and password
    host: str  # without brackets
    port: int
    secure: bool  # TLS to the proxy itself
    variable: str  # that names it, for messages
    authorization: str = field(default="", repr=False)  # "Basic …"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyException:
    """An entry of NO_PROXY: hosts that are connected to directly."""

    domain: str = ""  # the host itself and everything below it; empty for any host
    network: IPNetwork | None = None  # of hosts that are written as numbers: names are not looked up
    port: int | None = None  # None for any

    def covers(self, host: str, port: int) -> bool:
        """Return whether a host is meant; it is in lower case and ASCII."""
        if self.port not in (None, port):
            return False
        if self.network is not None:
            address = _address(host)
            return address is not None and address.version == self.network.version and address in self.network
        host = host.removesuffix(".")
        return not self.domain or host == self.domain or host.endswith("." + self.domain)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRules:
    """Which proxy a server is reached through; one that cannot be used is an error only where it is needed."""

    https: Proxy | BadConfiguration | None = None
    http: Proxy | BadConfiguration | None = None
    exceptions: tuple[ProxyException, ...] = ()

    def route(self, host: str, port: int, *, secure: bool) -> Proxy | None:
        """Return the proxy for a server, None for none, or raise BadConfiguration when it cannot be used."""
        proxy = self.https if secure else self.http
        if proxy is None or is_loopback(host) or any(entry.covers(host, port) for entry in self.exceptions):
            return None
        if isinstance(proxy, BadConfiguration):
            raise proxy
        return proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Everything that the environment says about connections."""

    proxies: ProxyRules = ProxyRules()
    no_proxy: str = ""  # the exceptions as they are written, for people
    certificate_file: str = ""  # as SSL_CERT_FILE says; empty for that of the system
    certificate_dir: str = ""  # as SSL_CERT_DIR says, several are separated by colons; empty for that of the system


DIRECT = Network()


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine; a proxy would look for it on its own."""
    address = _address(host)
    if address is not None:
        return address.is_loopback or address.is_unspecified
    name = host.removesuffix(".")
    return name == "localhost" or name.endswith(".localhost")


def parse_exceptions(text: str) -> tuple[ProxyException, ...]:
    """Read NO_PROXY: `*`, domains with or without a leading dot, addresses and networks, all but the last with a port.

    What is none of them covers nothing, as everywhere else.
    """
    entries = text.replace(",", " ").lower().split()
    return tuple(_exception(entry) for entry in entries)


def _exception(entry: str) -> ProxyException:
    if (network := _network(entry.strip("[]"))) is not None:
        return ProxyException(network=network)
    host, colon, digits = entry.rpartition(":")
    port = int(digits) if colon and _PORT.fullmatch(digits) else None
    host = (entry if port is None else host).strip("[]")
    if port is not None and (network := _network(host)) is not None:
        return ProxyException(network=network, port=port)
    if host == "*":
        return ProxyException(port=port)
    domain = host.removeprefix("*").removeprefix(".").removesuffix(".")
    return ProxyException(domain=_ascii(domain) or "\0", port=port)  # no host has that name


def _ascii(domain: str) -> str:
    try:
        return domain.encode("idna").decode()
    except UnicodeError:
        return ""


def _network(text: str) -> IPNetwork | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _address(host: str) -> IPAddress | None:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
