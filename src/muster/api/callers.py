"""Who asks: the user behind a token, what the token allows, and the address that the request came from."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal

from muster.domain.errors import AccessDenied, BadConfiguration
from muster.domain.money import from_usd
from muster.domain.run import User
from muster.settings import Settings
from muster.settings.service import TokenSection

Scope = Literal["read", "start", "review", "admin", "gateway"]
SCOPES: tuple[Scope, ...] = ("read", "start", "review", "admin", "gateway")
MIN_SECRET = 16  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCaller:
    """The user of one request; without a name it is the local user of a server on loopback."""

    name: str | None
    scopes: frozenset[str]
    address: str
    day_usd: float | None = None

    @property
    def user(self) -> User:
        """The user as the application layer knows them."""
        cap = None if self.day_usd is None else from_usd(f"{self.day_usd:.6f}")
        return User(name=self.name, sees_all=self.is_admin, day_cap=cap)

    @property
    def is_admin(self) -> bool:
        """Return whether this user sees and touches the runs of everybody."""
        return "admin" in self.scopes

    def require(self, scope: Scope) -> None:
        """Raise AccessDenied when the token does not have a scope; `admin` includes every other."""
        if scope not in self.scopes and not self.is_admin:
            raise AccessDenied(
                f"token {self.name!r} does not have the scope {scope!r}",
                suggestions=(f'add "{scope}" to scopes of this token in muster.toml',),
            )


class TokenTable:
    """The tokens that the operator declared; secrets are kept as digests and compared in constant time."""

    def __init__(self, tokens: Sequence[tuple[TokenSection, str]]) -> None:
        self._tokens = [(section, _digest(secret)) for section, secret in tokens]

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def find(self, secret: str) -> TokenSection | None:
        """Return the token with a secret; every one is compared, whichever fits."""
        given, found = _digest(secret), None
        for section, digest in self._tokens:
            if hmac.compare_digest(given, digest):
                found = section
        return found


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def read_tokens(settings: Settings) -> TokenTable:
    """Return the declared tokens; raises BadConfiguration for one without a secret, or with a short or shared one."""
    found: list[tuple[TokenSection, str]] = []
    for section in settings.tokens:
        secret = settings.variable(section.secret_env)
        if secret is None:
            raise BadConfiguration(
                f"token {section.name!r} has no secret: {section.secret_env} is not set",
                suggestions=(f"set {section.secret_env}, or remove the token from muster.toml",),
            )
        if len(secret) < MIN_SECRET:
            raise BadConfiguration(
                f"the secret of token {section.name!r} is too short: {section.secret_env} must have at least "
                f"{MIN_SECRET} characters",
                suggestions=("use a random one, for example from: openssl rand -hex 32",),
            )
        if secret in [other for _, other in found]:
            raise BadConfiguration(
                f"token {section.name!r} has the same secret as another token; use a different secret for each"
            )
        found.append((section, secret))
    return TokenTable(found)


Headers = Sequence[tuple[bytes, bytes]]


def bearer_of(headers: Headers) -> str | None:
    """Return the secret of an Authorization header; None without one."""
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        return None
    kind, _, secret = values[0].decode("latin-1").partition(" ")
    return secret.strip() or None if kind.lower() == "bearer" else None


Networks = Sequence[IPv4Network | IPv6Network]


def read_networks(names: Sequence[str]) -> Networks:
    """Return addresses and networks as networks; raises BadConfiguration for anything else."""
    found = []
    for name in names:
        try:
            found.append(ip_network(name, strict=False))
        except ValueError:
            raise BadConfiguration(
                f"serve.trusted_proxies: {name!r} is not an address or a network",
                suggestions=('write it like "10.0.0.7" or "10.0.0.0/8"',),
            ) from None
    return tuple(found)


def client_address(peer: str, headers: Headers, trusted: Networks) -> str:
    """Return the address of the client: that of the peer, or what the nearest trusted proxies say it was.

    X-Forwarded-For is read from its end: the first address that is not a trusted proxy is the client.
    """
    address = peer
    said = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
    forwarded = [part.strip() for value in said for part in value.split(",")]
    while forwarded and is_one_of(address, trusted):
        nearer = forwarded.pop()
        if not _is_address(nearer):
            break
        address = nearer
    return address


def is_one_of(address: str, networks: Networks) -> bool:
    """Return whether an address belongs to one of some networks."""
    return _is_address(address) and any(ip_address(address) in network for network in networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class Callers:
    """Finds out who asks."""

    def __init__(self, tokens: TokenTable, proxies: Networks) -> None:
        self._tokens, self._proxies = tokens, proxies

    def identify(self, peer: str, headers: Headers) -> RequestCaller | None:
        """Return the user of a request; None when it has no valid token and needs one."""
        address = client_address(peer, headers, self._proxies)
        if not self._tokens:
            return RequestCaller(name=None, scopes=frozenset(SCOPES), address=address)
        secret = bearer_of(headers)
        token = None if secret is None else self._tokens.find(secret)
        if token is None:
            return None
        return RequestCaller(name=token.name, scopes=frozenset(token.scopes), address=address, day_usd=token.day_usd)
