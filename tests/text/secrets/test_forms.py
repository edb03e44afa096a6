"""Secrets of many services are recognised by what their issuers document; each rule is data, and searched quickly."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from muster.text.secrets.forms import ADDRESSES, FORMS, SERVICES, WEAK, expand
from muster.text.secrets.named import is_key, random_looking
from muster.text.secrets.redaction import GUESSED, Redactor, redact

from .drawn import texts
from .samples import BY_FORM, BY_NAME, draw, samples

MIN_RECALL = 0.998


def test_secrets_of_more_than_a_hundred_services_are_taken_out() -> None:
    missed, drawn = Counter[str](), 0
    for service, secret, text in samples(4):
        clean, found = Redactor().code_and_secrets(text)
        known = any(one.kind not in GUESSED for one in found)
        drawn, missed[service] = drawn + 1, missed[service] + (secret in clean or not known)
    print(f"{len(missed)} formats, {drawn} secrets, missed: {dict(+missed)}")
    assert len(BY_FORM) + len(BY_NAME) > 150
    assert 1 - missed.total() / drawn >= MIN_RECALL
    assert max(missed.values()) <= 2


def test_every_kind_has_a_sample() -> None:
    random = Random(1)
    drawn = {kind for form in BY_FORM.values() for kind in redact(draw(form, random)).found}
    assert {kind for kind, _, _ in (*FORMS, *ADDRESSES)} - drawn == set()


HARMLESS = [
    "test_the_table_has_a_row_for_each_of_its_members_and_keys = 1", "import re_compiled_expressions_of_words",
    'class_name = "pa-4 pa-md-6 text-subtitle-1 font-weight-medium-x1"',
    "live_reload_of_pages_and_styles_in_the_browser",
    "sha256 = '3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b'", "fw_something_of_the_framework",
    'integrity = "sha512-z3rT9Yp2eOzqNl5AYu1q0FvP8k5M2rFj3v0sYJm6yqk9v0l0Vv1pX0Q9w4lqkT8Y0bq5n0o8w=="',
    'datadog_site = "datadoghq.eu"', 'heroku_app_id = "b8e57a34-8400-403d-ad14-d4ba975f6daa"', "SKIP_LOCKED = 1",
    'commit = "9fceb02d0ae598e95dc970b74767f19372d61af8"', "key-value pairs", 'x = "cloudflare_api_token"',
    "the login form and its password field", "password: str", "password: settings.database.password1",
    '"auth": "basic"', '"auth": "bm90aGluZw=="', "db.py:12:app:me:hunter2", "password = hashed_password2",
]  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_begins_like_a_secret_stays(text: str) -> None:
    assert Redactor().code(f"x = 1\n{text}\ny = 2\n") == f"x = 1\n{text}\ny = 2\n"


@pytest.mark.parametrize(
    ("name", "text", "secret", "kind"),
    [
        (".netrc", "machine h.example login me password hunter22\n", "hunter22", "netrc_password"),
        ("_netrc", "machine h.example\n  login me\n  password s3cr3t-word\n", "s3cr3t-word", "netrc_password"),
        (".pgpass", "db.example:5432:app:me:hunter2\n", "hunter2", "pgpass_password"),
        ("pgpass.conf", "*:*:*:me:pass\\:word7\n", "pass\\:word7", "pgpass_password"),
        ("config.json", '{"auths": {"h": {"auth": "bWU6aHVudGVyMjI="}}}', "bWU6aHVudGVyMjI=", "docker_auth"),
        ("a.yaml", "db:\n  password: hunter2-xK9 # old\n", "hunter2-xK9", "assigned_secret"),
        ("a.ini", "db_password = Tr0ub4dor\n", "Tr0ub4dor", "assigned_secret"),
    ],
)
def test_files_that_hold_credentials_are_understood(name: str, text: str, secret: str, kind: str) -> None:
    clean, found = Redactor().code_and_secrets(text, name)
    assert (secret in clean, [one.kind for one in found]) == (False, [kind])


def test_a_private_key_in_base64_is_one() -> None:
    key = "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFb3dJQkFBS0NBUUVBNnBhc3M1MjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4"
    certificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUVvd0lCQUFLQ0FRRUE2cGFzczUyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2"
    assert redact(f"client-key-data: {key}\n").found == {"private_key": 1}
    assert redact(f"client-certificate-data: {certificate}\n").found == {}


def _repeats_are_bounded(pattern: str) -> bool:
    """Return whether every repeat without an end is possessive, so that nothing is tried twice."""
    return not re.search(r"(?:[*+]|\{\d+,\})(?!\+)", re.sub(r"\\.|\[[^\]]*\]|[*+?}]\+", "", pattern))


@pytest.mark.parametrize("kind", sorted({kind for kind, _, _ in FORMS}))
def test_no_rule_has_an_endless_repeat_that_goes_back(kind: str) -> None:
    patterns = [expand(form) for name, _, form in (*FORMS, *ADDRESSES) if name == kind]
    patterns += [expand(form) for _, form in SERVICES] if kind == "aws_key" else []
    assert all(_repeats_are_bounded(pattern) for pattern in patterns), patterns


def test_the_work_grows_with_the_text_and_no_faster() -> None:
    """All beginnings of secrets at once, again and again: ten times the text takes about ten times as long."""
    random = Random(2)
    piece = " ".join(draw(form, random)[:-3] for form in BY_FORM.values()) + " datadog_key: " * 20
    short, long = piece * 2, piece * 20
    assert _seconds(long) < 30 * _seconds(short) + 0.1


def _seconds(text: str) -> float:
    started = time.process_time()
    redact(text)
    return time.process_time() - started


def _dead(kind: str, hints: str, form: str, random: Random) -> Iterator[str]:
    """Return what a rule says that it finds, and does not."""
    drawn = texts(expand(form), 6 * len(hints.split()), random)
    if kind in WEAK:
        drawn = [text for text in drawn if random_looking(text)]
    for hint in hints.split():
        if not any(hint in text.lower() for text in drawn):
            yield f"{kind}: nothing has the hint {hint!r}"
    yield from (f"{kind}: {text[:60]!r} is not found" for text in drawn if not _is_known(text))


def _is_known(text: str) -> bool:
    _, found = Redactor().code_and_secrets(f'value = "{text}"\n')
    return any(one.kind not in GUESSED for one in found)


def test_every_alternative_of_every_form_is_found_and_every_hint_is_met() -> None:
    random = Random(3)
    assert [line for row in (*FORMS, *ADDRESSES) for line in _dead(*row, random)] == []


@pytest.mark.parametrize(("names", "form"), SERVICES)
def test_every_name_and_form_of_a_service_is_found(names: str, form: str) -> None:
    random = Random(4)
    values = [value for value in texts(expand(form), 20, random) if is_key(value)]
    assert values
    assert [text for name in names.split("|") for value in values
            if not _is_known(text := f'{name.rstrip("_")}_key = "{value}"')] == []  # fmt: skip


def test_a_putty_key_is_taken_out_line_by_line() -> None:
    lines = f"Private-Lines: 2\n{'aZ9+bY8/' * 8}\n{'cX7+dW6/' * 6}\n"
    key = f"Public-Lines: 1\n{'AAAAB3Nz' * 6}\n{lines}Private-MAC: 0a1b2c\n"
    assert redact(key).found == {"private_key": 1}
    clean = Redactor().code(key)
    assert clean.count("\n") == key.count("\n")
    assert "aZ9+" not in clean
    assert "cX7+" not in clean
    assert clean.endswith("Private-MAC: 0a1b2c\n")
