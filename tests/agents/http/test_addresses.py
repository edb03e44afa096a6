import pytest

from muster.agents.http.request import below, join
from muster.domain.errors import BadConfiguration


@pytest.mark.parametrize(
    ("base", "whole"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/x"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/x"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/x"),
        ("http://[::1]:80", "http://[::1]:80/x"),
        ("http://localhost:1", "http://localhost:1/x"),
        ("http://192.168.1.7:8000", "http://192.168.1.7:8000/x"),
        ("http://10.0.0.1", "http://10.0.0.1/x"),
        ("http://ollama:11434", "http://ollama:11434/x"),
        ("http://host.docker.internal:1", "http://host.docker.internal:1/x"),
    ],
)
def test_a_base_address_and_a_path_are_joined(base: str, whole: str) -> None:
    assert join(base, "/x") == whole


@pytest.mark.parametrize("base", ["", "api.openai.com", "ftp://x", "file:///etc", "https://", "https://x:port"])
def test_what_is_no_web_address_is_refused(base: str) -> None:
    with pytest.raises(BadConfiguration):
        join(base, "/x")


@pytest.mark.parametrize("base", ["http://api.openai.com/v1", "http://8.8.8.8", "http://[2606:4700::1]"])
def test_a_key_never_goes_unencrypted_over_the_internet(base: str) -> None:
    with pytest.raises(BadConfiguration, match="unencrypted"):
        join(base, "/x")


@pytest.mark.parametrize("base", ["https://me:secret@x.org", "https://x.org?key=secret", "ftp://me:secret@x.org"])
def test_secrets_in_addresses_are_refused_and_not_shown(base: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        join(base, "/x")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.example.org", "https://api.example.org/v1/x?part=1"),
        ("https://api.example.org", "https://API.example.org:443/v1/x"),
        ("https://api.example.org/base/", "https://api.example.org/base/x"),
        ("http://[::1]:80/base", "http://[::1]/base/a..b"),
    ],
)
def test_an_address_below_the_base_is_given_back(base: str, url: str) -> None:
    assert below(base, url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.org/base/x",
        "https://api.example.org:444/base/x",
        "https://api.example.org.evil.org/base/x",
        "https://evil.org/base/x?y=secret",
        "https://api.example.org/other",
        "https://api.example.org/base/../other?secret",
        "https://me:secret@api.example.org/base/x",
        "//api.example.org/base/x",
        "",
    ],
)
def test_an_address_elsewhere_is_refused_and_no_secret_of_it_shown(url: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        below("https://api.example.org/base", url)
    assert "secret" not in str(caught.value)
