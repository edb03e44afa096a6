"""`muster verify --fix --agent CODER`: an agent repairs in a worktree, and what passes after that is 0."""

import json
from pathlib import Path

import pytest

from .shell import Shell
from .verify_home import PRICED, VerifyHome, checker, home

__all__ = ["home"]

MEND = "sed -i s/BAD/GOOD/ src/*.py"


def hire(home: VerifyHome, script: str, name: str = "coder") -> None:
    """Declare an agent that runs a script, says that it cost 0.10, and leaves a line for each time it was asked."""
    count = home.folder.parent / "asked"
    answer = """echo '{"result": "done", "cost": 0.1}'"""
    words = json.dumps(["sh", "-c", f"cat > {home.folder.parent}/prompt; echo x >> {count}; {script}; {answer}"])
    section = 'kind = "cli"\noutput = "json"\nanswer = "$.result"\ncost_usd = "$.cost"\nbudget_usd = 0.2\n'
    home.repository.write("muster.toml", f"{PRICED}\n[agents.{name}]\n{section}command = {words}\n")


def times_asked(home: VerifyHome) -> int:
    path = home.folder.parent / "asked"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def shop(home: VerifyHome) -> VerifyHome:
    """A repository whose user has changed, staged and new files, one of which is bad."""
    hire(home, MEND)
    home.repository.write("src/old.py", "x = 1\n")
    home.declare(checker())
    home.repository.commit()
    home.repository.write("src/old.py", "x = BAD\n")
    home.repository.write("src/staged.py", "y = 1\n")
    home.repository.git("add", "src/staged.py")
    home.repository.write("src/new.py", "z = BAD  # new\n")
    return home


def users_files(home: VerifyHome) -> tuple[str, ...]:
    asked = (("status", "--porcelain"), ("diff",), ("diff", "--cached"), ("stash", "list"), ("rev-parse", "HEAD"))
    return tuple(home.repository.git(*words) for words in asked)


def test_findings_are_repaired_on_a_branch_and_verified_again(shop: VerifyHome) -> None:
    before = users_files(shop)
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    data = found.data()
    assert found.code == 0
    fix = data["fix"]
    assert (fix["agent"], fix["changed"], fix["cost_usd"]) == ("coder", ["src/new.py", "src/old.py"], 0.1)
    assert "+x = GOOD" in fix["diff"]
    assert "BAD" not in "".join(line for line in fix["diff"].splitlines() if line.startswith("+"))
    assert shop.repository.git("show", f"{fix['branch']}:src/new.py") == "z = GOOD  # new\n"
    assert shop.repository.git("show", f"{fix['branch']}:src/staged.py") == "y = 1\n"
    assert users_files(shop) == before
    assert (shop.folder / "src/old.py").read_text() == "x = BAD\n"
    assert "error" not in shop.repository.git("fsck", "--strict")
    prompt = (shop.folder.parent / "prompt").read_text()
    assert "src/old.py:1 (high, BAD; found by checker)" in prompt
    assert sorted(run["workload"] for run in shop.runs()) == ["task", "waves", "waves"]


def test_people_are_shown_the_diff_and_how_to_merge_it(shop: VerifyHome) -> None:
    found = shop.verify("src/old.py", "--fix", "--agent", "coder")
    assert found.code == 0, found.err
    assert found.out.startswith("The only agent in 1 wave over ")
    for words in ("+x = GOOD", "muster/task-", "muster task merge"):
        assert words in found.out
    assert "coder repairs the findings as task" in found.err


def test_what_the_agent_changed_in_the_users_repository_is_told_and_is_no_repair(shop: VerifyHome) -> None:
    hire(shop, f"{MEND}; git config core.hooksPath elsewhere")
    found = shop.verify("src", "--fix", "--agent", "coder")
    assert "setting core.hookspath: nothing became elsewhere; restore it with: git config" in found.out
    assert found.code == 1
    shop.repository.git("config", "--unset-all", "core.hooksPath")
    hire(shop, "sed -i s/BAD/FINE/ src/*.py; git config core.hooksPath elsewhere")
    again = shop.verify("src", "--fix", "--agent", "coder", "--json")
    told = json.loads(again.out)["data"]["fix"]
    assert again.code == 1
    assert "coder changed settings of the repository" in told["obstacle"]
    assert [change["what"] for change in told["repository_changes"]] == ["setting core.hookspath"]


def test_the_direct_form_and_other_verification_agents_stay_what_they_are(shop: VerifyHome) -> None:
    shop.declare(checker(), checker("other"))
    direct = shop.verify("src", "--fix", "--agent", "checker")
    assert (direct.code, times_asked(shop)) == (1, 0)
    assert "nothing was changed" in direct.err
    found = shop.verify("src", "--fix", "--agent", "checker", "--agent", "coder", "--json").data()
    assert [agent["agent"] for wave in found["waves"] for agent in wave["agents"]] == ["checker"]


def test_where_nothing_is_found_nobody_is_asked(shop: VerifyHome) -> None:
    assert shop.verify("src/staged.py", "--fix", "--agent", "coder").code == 0
    assert times_asked(shop) == 0


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("true", "changed nothing"),
        ("echo more >> src/old.py", ""),
        ("rm src/old.py; sed -i s/BAD/GOOD/ src/new.py", "no longer verifiable: src/old.py"),
        ("sed -i '1i # @generated' src/*.py", "no longer verifiable"),
        ("echo 'agents: []' > verify.yaml", ""),
        ("exit 3", "is failed"),
    ],
    ids=["nothing", "no better", "deletes", "hides", "edits who verifies", "fails"],
)
def test_what_does_not_help_is_no_success(shop: VerifyHome, script: str, words: str) -> None:
    hire(shop, script)
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    assert found.code == 1
    assert found.error()["code"] == "not_passed"
    fix = found.envelope()["data"]["fix"]
    assert words in fix.get("obstacle", "")
    assert times_asked(shop) == 1


def test_a_file_that_was_added_is_verified_too(shop: VerifyHome) -> None:
    hire(shop, f"{MEND}; echo 'w = BAD' > src/more.py")
    found = shop.verify("src/old.py", "src/new.py", "--fix", "--agent", "coder", "--json")
    assert found.code == 1
    assert "src/more.py" in json.dumps(found.envelope()["data"]["findings"])


def test_a_repair_that_failed_is_tried_again_by_resume_without_paying_for_the_first_verification(
    shop: VerifyHome,
) -> None:
    hire(shop, "test -e ../../../go || exit 3; sed -i s/BAD/GOOD/ src/*.py")
    first = shop.verify("src", "--fix", "--agent", "coder", "--name", "nightly")
    assert first.code == 1
    (shop.folder / "go").touch()
    again = shop.verify("resume", "nightly")
    assert again.code == 0, again.err
    assert (times_asked(shop), len([run for run in shop.runs() if run["workload"] == "waves"])) == (2, 2)
    assert shop.verify("resume", "nightly").code == 0
    assert (times_asked(shop), len(shop.runs())) == (2, 4)  # and now nothing is done any more


def test_all_of_it_shares_one_budget(shop: VerifyHome) -> None:
    assert shop.verify("src", "--fix", "--agent", "coder", "--budget", "0.5").code == 0
    budgets = {run["workload"]: run["budget_usd"] for run in shop.runs()}
    assert budgets["task"] == 0.5
    newest = next(run for run in shop.runs() if run["workload"] == "waves")
    assert newest["budget_usd"] == pytest.approx(0.4)
    over = shop.verify("src", "--fix", "--agent", "coder", "--budget", "0.05")
    assert over.code == 1
    assert "0.05" in over.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("src", "--agent", "reader"), 5, "not a CLI agent in muster.toml"),
        (("src", "--agent", "nobody"), 5, "unknown agent 'nobody'"),
        (("src", "--agent", "coder", "--agent", "second"), 2, "only one agent can repair"),
        (("--staged", "--agent", "coder"), 2, "--fix"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(
    shop: VerifyHome, words: tuple[str, ...], code: int, told: str
) -> None:
    path = shop.folder / "muster.toml"
    section = path.read_text().split("[agents.coder]")[1]
    path.write_text(f"{path.read_text()}\n[agents.second]{section}")
    found = shop.verify("--fix", *words)
    assert (found.code, told in found.err) == (code, True), found.err
    assert shop.runs() == []


def test_outside_of_git_an_agent_is_refused(home: VerifyHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.py").write_text("BAD\n")
    hire(home, MEND)
    (plain / "muster.toml").write_text((home.folder / "muster.toml").read_text())
    monkeypatch.chdir(plain)
    found = home.verify("a.py", "--fix", "--agent", "coder", "--agents", str(home.folder / "verify.yaml"))
    assert found.code == 2
    assert "not in the git repository of the project" in found.err


@pytest.mark.parametrize(
    ("point", "nth", "asked"),
    [
        ("call.settled", 1, 1),  # in the first verification
        ("call.answered", 2, 2),  # the agent has answered, and nobody knows: its reservation is booked as uncertain
        pytest.param(
            "call.settled", 2, 1, marks=pytest.mark.chaos
        ),  # its answer is stored, and its work is not saved yet
        pytest.param("call.opened", 3, 1, marks=pytest.mark.chaos),  # in the second verification
        pytest.param("call.settled", 3, 1, marks=pytest.mark.chaos),
    ],
)
def test_a_repair_that_is_killed_goes_on_and_pays_no_answer_twice(
    shop: VerifyHome, point: str, nth: int, asked: int
) -> None:
    before = users_files(shop)
    shell = Shell(shop.folder, {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"})
    shell.crash(point, "verify", "src", "--fix", "--agent", "coder", "--name", "nightly", nth=nth)
    done = shell.muster("verify", "resume", "nightly", "--json")
    assert done.code == 0, done
    assert done.data()["fix"]["changed"] == ["src/new.py", "src/old.py"]
    assert times_asked(shop) == asked
    task = next(run for run in shop.runs() if run["workload"] == "task")
    assert shell.run(task["id"])["uncertain_usd"] == pytest.approx(0.2 * (asked - 1))
    assert users_files(shop) == before


@pytest.mark.chaos
def test_a_repair_that_is_killed_while_a_part_of_it_is_verified_goes_on(shop: VerifyHome) -> None:
    hire(shop, f"{MEND}; echo more > notes.txt")
    shell = Shell(shop.folder, {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"})
    shell.crash("call.opened", "verify", "src", "--fix", "--agent", "coder", "--name", "nightly", nth=4)
    kept = {one["name"] for one in shop.muster("pool", "gc", "--json").data() if not one["removed"]}
    assert len([name for name in kept if name.startswith("fixed-")]) == 1  # that of the whole is not needed any more
    done = shell.muster("verify", "resume", "nightly", "--json")
    assert done.code == 0, done
    assert (times_asked(shop), "+more" in done.data()["fix"]["elsewhere"]) == (1, True)
    assert [path.name[:5] for path in (shop.folder / ".muster/worktrees").iterdir()] == ["task-"]
