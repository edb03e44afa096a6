"""NO_PROXY and the rules around it: which hosts are reached directly."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadConfiguration
from muster.domain.network import Proxy, ProxyRules, is_loopback, parse_exceptions

PROXY = Proxy(place="http://p:1", host="p", port=1, secure=False, variable="HTTPS_PROXY")
ABOVE = Proxy(place="http://q:1", host="q", port=1, secure=False, variable="HTTP_PROXY")


def direct(no_proxy: str, host: str, port: int = 443) -> bool:
    rules = ProxyRules(https=PROXY, exceptions=parse_exceptions(no_proxy))
    return rules.route(host, port, secure=True) is None


@pytest.mark.parametrize(
    ("no_proxy", "host"),
    [
        ("*", "api.example.org"),
        ("a.test, *", "api.example.org"),
        ("example.org", "example.org"),
        ("example.org", "api.example.org"),
        (".example.org", "api.example.org"),
        (".example.org", "example.org"),
        ("*.example.org", "api.example.org"),
        ("EXAMPLE.ORG.", "api.example.org"),
        ("example.org", "api.example.org."),
        ("a.test,example.org b.test", "example.org"),
        (" , a.test ,, example.org", "example.org"),
        ("example.org:443", "api.example.org"),
        ("*:443", "api.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3:443", "10.1.2.3"),
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.1.2.3/8", "10.9.9.9"),
        ("10.0.0.0/8", "::ffff:10.1.2.3"),
        ("fd00::/8", "fd00::1"),
        ("fd00::1", "fd00:0:0::1"),
        ("[fd00::1]", "fd00::1"),
        ("[fd00::1]:443", "fd00::1"),
        ("internal", "internal"),
    ],
)
def test_a_host_that_is_excepted_is_reached_directly(no_proxy: str, host: str) -> None:
    assert direct(no_proxy, host)


@pytest.mark.parametrize(
    ("no_proxy", "host"),
    [
        ("", "example.org"),
        ("example.org", "example.org.evil.test"),
        ("example.org", "badexample.org"),
        ("api.example.org", "example.org"),
        ("example.org:80", "example.org"),
        ("*:80", "example.org"),
        ("10.1.2.3", "10.1.2.30"),
        ("10.1.2.3:80", "10.1.2.3"),
        ("10.0.0.0/8", "11.0.0.1"),
        ("10.0.0.0/8", "10.example.org"),
        ("10.0.0.0/99", "10.1.2.3"),
        ("fd00::/8", "10.1.2.3"),
        ("0.0.0.0/0", "fd00::1"),
        ("[fd00::1]:80", "fd00::1"),
        (".", "example.org"),
        ("*.", "example.org"),
        (":443", "example.org"),
        ("http://example.org", "example.org"),
        ("example.*", "example.org"),
        ("a" * 64, "example.org"),
        (f"example.org:{'9' * 5000}", "example.org"),
    ],
)
def test_every_other_host_goes_through_the_proxy(no_proxy: str, host: str) -> None:
    assert not direct(no_proxy, host)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    for entry in parse_exceptions(text):
        entry.covers("example.org", 443)


@given(st.ip_addresses(v=4), st.integers(0, 32), st.ip_addresses(v=4))
def test_a_network_covers_its_addresses_and_no_other(base: object, bits: int, other: object) -> None:
    network = ip_network(f"{base}/{bits}", strict=False)
    (entry,) = parse_exceptions(f"{base}/{bits}")
    assert entry.covers(str(base), 443)
    assert entry.covers(str(other), 443) is (other in network)


LABELS = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)


@given(st.lists(LABELS, min_size=1, max_size=4), st.lists(LABELS, max_size=3), LABELS)
def test_a_domain_covers_what_is_below_it_and_nothing_that_only_ends_alike(
    domain: list[str], below: list[str], other: str
) -> None:
    (entry,) = parse_exceptions("." + ".".join(domain))
    assert entry.covers(".".join([*below, *domain]), 443)
    assert not entry.covers(other + ".".join(domain), 443)


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0"]
)
def test_this_machine_is_never_looked_for_behind_a_proxy(host: str) -> None:
    assert is_loopback(host)
    assert direct("", host)


@pytest.mark.parametrize("host", ["localhost.example.org", "notlocalhost", "128.0.0.1", "10.0.0.1", "::2"])
def test_other_machines_are_not_this_one(host: str) -> None:
    assert not is_loopback(host)


def test_each_kind_of_address_has_its_own_proxy() -> None:
    rules = ProxyRules(https=PROXY, http=ABOVE)
    assert rules.route("example.org", 443, secure=True) is PROXY
    assert rules.route("example.org", 80, secure=False) is ABOVE
    assert ProxyRules(https=PROXY).route("example.org", 80, secure=False) is None


def test_a_proxy_that_cannot_be_used_is_an_error_only_where_it_is_needed() -> None:
    rules = ProxyRules(https=BadConfiguration("bad"), http=ABOVE, exceptions=parse_exceptions("inside.test"))
    assert rules.route("inside.test", 443, secure=True) is None
    assert rules.route("127.0.0.1", 443, secure=True) is None
    assert rules.route("example.org", 80, secure=False) is ABOVE
    with pytest.raises(BadConfiguration, match="bad"):
        rules.route("example.org", 443, secure=True)
