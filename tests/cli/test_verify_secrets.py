"""Secrets in verified code: found without a model, told by place and kind only, and allowed one by one."""

import hashlib

import pytest

from .verify_home import VerifyHome, home, reviewer

__all__ = ["home"]

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
KEY = "sk-ant-api03-" + "Zx9Qw7Er5Ty3" * 4
DECLARED = """\
# Who looks at our code.
agents:   # one is enough
  - name: reviewer
    model: reader   # a script
    shape: review
    prompt: Review it.
    thresholds: ["score >= 9"]

# the end
"""


def write(home: VerifyHome, *lines: str) -> None:
    """Declare an agent that passes everything, and write a file."""
    home.repository.write("verify.yaml", DECLARED)
    home.repository.write("src/shop.py", "".join(f"{line}\n" for line in lines))


def test_a_key_of_a_known_form_is_a_finding_that_no_report_tells_anything_else_of(home: VerifyHome) -> None:
    write(home, "a = 1", f"one, other = '{TOKEN}', '{KEY}'")
    kinds = ("markdown", "json", "sarif", "junit")
    reports = [f"--report={kind}=report.{kind}" for kind in kinds]
    found = home.verify("src", "--json", "--agent", "reviewer", *reports)
    assert found.code == 1
    said = found.envelope()["data"]["findings"]
    assert [(one["file"], one["line"], one["severity"], one["rule"], one["by"]) for one in said] == [
        ("src/shop.py", 2, "high", "anthropic_key", ["muster-secrets"]),
        ("src/shop.py", 2, "high", "github_token", ["muster-secrets"]),
    ]
    told = [found.out.encode(), found.err.encode(), *((home.folder / f"report.{kind}").read_bytes() for kind in kinds)]
    told += [path.read_bytes() for path in (home.folder / ".muster").rglob("*") if path.is_file()]
    assert len(told) > len(kinds) + 2
    for secret in (TOKEN, KEY):
        traces = (secret[:12], secret[-12:], hashlib.sha256(secret.encode()).hexdigest())
        assert not [one[:200] for one in told for trace in traces if trace.encode() in one]


def test_a_guess_by_name_is_low_and_thresholds_over_all_agents_see_it(home: VerifyHome) -> None:
    write(home, 'password = "hunter2-and-more"')
    found = home.verify("src")
    assert found.code == 0, found
    assert "low       src/shop.py:1  muster-secrets · assigned_secret" in found.out
    home.declare(reviewer(), thresholds=["total == 0"])
    assert home.verify("src").code == 1


def test_an_exception_is_written_beside_everything_else_and_holds_for_this_place_only(home: VerifyHome) -> None:
    write(home, f"token = '{TOKEN}'", "b = 2")
    assert home.verify("src").code == 1
    done = home.verify("allow-secret", "src/shop.py:1")
    assert done.code == 0, done
    exception = '  - {file: "src/shop.py", line: 1, kind: github_token}\n'
    assert (home.folder / "verify.yaml").read_text() == f"{DECLARED}allow_secrets:\n{exception}"
    assert home.verify("src").code == 0
    home.repository.write("src/shop.py", f"token = '{KEY}'\n")
    assert home.verify("src").code == 1  # another kind at the same place
    home.repository.write("src/shop.py", f"\ntoken = '{TOKEN}'\n")
    assert home.verify("src").code == 1  # the same at another place
    assert home.verify("allow-secret", "src/shop.py:2").code == 0
    assert home.verify("src").code == 0
    assert (home.folder / "verify.yaml").read_text().startswith(f"{DECLARED}allow_secrets:\n{exception}  - ")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("src/shop.py:2", "no secret was found at src/shop.py:2; secrets of this file are at: 1"),
        ("src/none.py:1", "no such file"),
        ("src/shop.py", "the place must be FILE:LINE, not 'src/shop.py'"),
        ("../shop.py:1", "is not below"),
    ],
)
def test_an_exception_for_nothing_is_refused(home: VerifyHome, place: str, says: str) -> None:
    write(home, f"token = '{TOKEN}'", "b = 2")
    found = home.verify("allow-secret", place, "--json")
    assert found.code != 0
    assert says in found.error()["message"]
    assert (home.folder / "verify.yaml").read_text() == DECLARED


def test_a_file_whose_layout_would_be_lost_is_left_alone(home: VerifyHome) -> None:
    write(home, f"token = '{TOKEN}'")
    home.declare(reviewer())
    before = (home.folder / "verify.yaml").read_text()
    found = home.verify("allow-secret", "src/shop.py:1", "--json").error()
    assert 'allow_secrets: [{file: "src/shop.py", line: 1, kind: github_token}]' in found["suggestions"][0]
    assert (home.folder / "verify.yaml").read_text() == before
    wrong = {"file": "src/shop.py", "line": 1, "knd": "github_token"}
    home.declare(reviewer(), allow_secrets=[wrong])
    assert "did you mean kind?" in home.verify("src", "--json").error()["message"]


@pytest.mark.parametrize(
    "options",
    [[], ["--agent", "first"], ["--wave", "1"], ["--allow-empty"]],
    ids=["all", "agent", "wave", "allow-empty"],
)
@pytest.mark.parametrize("way", [["src"], ["--changed"], ["--staged"], ["--pending"]], ids=lambda way: way[0])
def test_a_secret_in_a_file_that_no_agent_looks_at_is_a_finding(
    home: VerifyHome, way: list[str], options: list[str]
) -> None:
    home.declare(reviewer("first", 1, include=["*.js"]), reviewer("second", include=["*.ts"]))
    home.repository.write("src/shop.js", "let a = 1\n")
    home.repository.write("src/shop.py", f"a = 1\ntoken = '{TOKEN}'\n")
    home.repository.write(".muster/pending/1.json", '{"files": ["src/shop.js", "src/shop.py"]}')
    home.repository.git("add", "src")
    if "--allow-empty" in options:
        home.repository.git("rm", "-qf", "src/shop.js")
        home.repository.write(".muster/pending/1.json", '{"files": ["src/shop.py"]}')
    kinds = ("markdown", "json", "sarif", "junit")
    found = home.verify(*way, *options, "--json", *(f"--report={kind}=../report.{kind}" for kind in kinds))
    data = found.envelope()["data"]
    assert found.code == 1, found
    said = [(one["file"], one["line"], one["severity"], one["rule"], one["by"]) for one in data["findings"]]
    assert said == [("src/shop.py", 2, "high", "github_token", ["muster-secrets"])]
    assert {"path": "src/shop.py", "why": "no agent handles such files"} in data["left_out"]


def test_what_is_excluded_or_allowed_or_only_guessed_fails_nothing(home: VerifyHome) -> None:
    home.declare(reviewer(include=["*.js"]), exclude=["*.txt"])
    home.repository.write("src/shop.js", "let a = 1\n")
    home.repository.write("src/notes.txt", f"token = '{TOKEN}'\n")
    home.repository.write("src/shop.py", "password = 'hunter2-and-more'\n")
    found = home.verify("src")
    assert found.code == 0, found
    assert "low       src/shop.py:1  muster-secrets · assigned_secret" in found.out
    home.repository.write("src/shop.py", f"token = '{TOKEN}'\n")
    assert home.verify("src").code == 1
    exception = {"file": "src/shop.py", "line": 1, "kind": "github_token"}
    home.declare(reviewer(include=["*.js"]), exclude=["*.txt"], allow_secrets=[exception])
    assert home.verify("src").code == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("poetry.lock", f'url = "https://me:{KEY}@host.example"\n'),
        ("api.py", f"# @generated\ntoken = '{TOKEN}'\n"),
        ("page.min.js", f"let token='{TOKEN}'\n"),
        ("page.js", f"let token='{TOKEN}';" + "a();" * 6_000),  # one long line, as packers write
    ],
)
def test_a_secret_in_a_generated_file_is_a_finding(home: VerifyHome, name: str, text: str) -> None:
    home.declare(reviewer())
    home.repository.write("src/shop.py", "a = 1\n")
    home.repository.write(f"src/{name}", text)
    found = home.verify("src", "--json")
    data = found.envelope()["data"]
    assert found.code == 1, found
    assert {(one["file"], one["severity"]) for one in data["findings"]} == {(f"src/{name}", "high")}
    assert f"src/{name}" in {one["path"] for one in data["left_out"]}


def test_a_secret_in_a_generated_file_can_be_allowed(home: VerifyHome) -> None:
    write(home, "a = 1")
    home.repository.write("src/api.py", f"# @generated\ntoken = '{TOKEN}'\n")
    assert home.verify("src").code == 1
    assert home.verify("allow-secret", "src/api.py:2").code == 0
    assert home.verify("src").code == 0


def test_named_secrets_fail_by_a_setting(home: VerifyHome) -> None:
    home.repository.write("src/shop.py", "a = 1\n")
    home.repository.write("src/settings.yaml", "db:\n  password: abkdJhwKqPzR\n")
    home.declare(reviewer())
    assert home.verify("src").code == 0
    home.declare(reviewer(), named_secrets="fail")
    found = home.verify("src", "--json")
    said = [(one["file"], one["line"], one["severity"]) for one in found.envelope()["data"]["findings"]]
    assert (found.code, said) == (1, [("src/settings.yaml", 2, "high")])
    home.declare(reviewer(include=["*.js"]), named_secrets="fail")
    assert home.verify("src", "--allow-empty").code == 1  # also in what no agent looks at
    home.declare(reviewer(), named_secrets="ignore")
    assert home.verify("src").code == 2
