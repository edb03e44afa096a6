"""Variants of a test: `make test` takes some of them, `make chaos` all.

Tests that are for each provider of batches run with one of them, which the name of the test decides: over all tests
both have their turn.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

PROVIDERS = ("anthropic/", "openai/")
OF_EACH_PROVIDER = ("tests/engine/batches/", "tests/cli/test_ask_batch.py", "tests/app/test_reported_usage.py")
# How many variants of each test of a file, or of one test, run every time.
MOST = {
    "tests/statistics/test_paired_tests.py": 1,  # simulations, which change with the statistics alone
    "tests/statistics/test_sample_size.py": 1,
    "tests/suites/compare/test_truth.py": 1,
    "tests/suites/compare/test_notice.py": 1,
    "tests/text/secrets/test_redaction.py::test_the_work_grows_with_the_text_and_no_faster": 9,
    "tests/cli/test_closed_pipe.py": 2,
    "tests/cli/test_namespaces.py": 1,
    "tests/cli/test_demo.py": 1,
    "tests/cli/test_read_only.py": 4,
    "tests/cli/test_full_disk.py": 1,
    "tests/cli/test_signals.py": 1,
    "tests/cli/test_verify_collection.py": 1,
    "tests/cli/test_verify_coders.py": 3,
    "tests/cli/test_output_targets.py": 6,
    "tests/cli/test_schema.py": 3,
    "tests/cli/test_max_tokens.py": 4,
    "tests/cli/test_verify_secrets.py": 6,
    "tests/cli/test_run.py::test_what_cannot_be_run_is_refused_with_its_exit_code_before_a_run_is_stored": 12,
    "tests/engine/test_typed_replies.py": 5,
    "tests/engine/test_drives.py": 3,
    "tests/git/test_worktree_crashes.py": 3,
    "tests/pool/test_messages.py": 1,
    "tests/pool/test_after.py": 3,
    "tests/verify/tools/test_pytest.py": 4,
    "tests/verify/test_failing.py": 9,
    "tests/councils/test_workload.py": 3,
    "tests/councils/test_misbehaviour.py": 2,
    "tests/dashboard/test_hostile.py": 4,
    "tests/agents/cli/test_cli_conformance.py": 8,
    "tests/text/test_patterns.py": 4,
    "tests/text/test_json_schema.py": 3,
    "tests/text/test_cpu_limit.py": 2,
    "tests/suites/reports/test_paging.py": 3,
}


# Not at all: others show the same with less work, or they simulate what changes with the statistics alone.
SELDOM = (
    "tests/cli/test_full_disk.py::test_answers_wait_for_room_on_a_full_disk_and_none_is_paid_twice",
    "tests/cli/test_read_only.py::test_a_read_only_store_is_listed_and_reported",
    "tests/statistics/test_paired_tests.py::test_where_cases_only_regress_the_limit_is_the_exact_one",
    "tests/statistics/test_sample_size.py::test_where_cases_themselves_differ_no_number_of_epochs_is_promised",
    "tests/councils/test_anonymity.py::test_a_fair_evaluator_is_seldom_reported",
    "tests/councils/test_misbehaviour.py::test_an_evaluator_that_favours_the_first_place_is_reported",
    "tests/suites/compare/test_notice.py::test_with_one_test_the_power_at_fifty_cases_is_higher",
    "tests/suites/test_figures.py::test_wilson_is_what_scipy_says",
    "tests/cli/test_demo.py::test_a_signal_ends_it_with_4_and_leaves_nothing",
    "tests/cli/test_demo.py::test_its_numbers_fit_together_and_its_suite_can_be_run_again",
    "tests/api/test_hostile_schemas.py::test_a_dialect_inside_of_a_schema_keeps_nobody_waiting",
    "tests/api/test_hostile_schemas.py::test_a_pattern_of_properties_keeps_nobody_waiting",
    "tests/battles/test_workload.py::test_large_validators_are_checked_while_everything_else_goes_on",
    "tests/engine/batches/test_lockstep.py::test_ten_live_runs_beside_them_neither_delay_batches_nor_are_delayed",
    "tests/councils/test_mixed.py::test_ten_councils_at_once_need_two_batches_for_each_round_and_provider",
    "tests/verify/test_crowd.py",
    "tests/mcp/test_sizes.py::test_all_calls_and_events_of_a_large_run_are_listed_once",
    "tests/git/test_worktrees.py::test_sixteen_trees_at_once_from_four_processes",
    "tests/text/test_json_schema.py::test_many_objects_of_many_kinds_fit",
)


def first_of(values: Iterable[Any], count: int = 1, *, several: bool = False) -> list[Any]:
    """Return the values for a parametrized test, of which all but the first ones are left to `make chaos`.

    With `several` each of them has a value for each of several parameters.
    """
    return [
        value if number < count else pytest.param(*(value if several else (value,)), marks=pytest.mark.chaos)
        for number, value in enumerate(values)
    ]


def mark_others(items: Sequence[pytest.Item]) -> None:
    """Mark the variants that do not run every time."""
    seen: Counter[str] = Counter()
    for item in items:
        test, _, variant = item.nodeid.partition("[")
        if test.startswith(SELDOM):
            item.add_marker(pytest.mark.chaos)
        if not variant:
            continue
        most = MOST.get(test, MOST.get(test.partition("::")[0]))
        seen[test] += 1
        if (most is not None and seen[test] > most) or _is_of_other(test, variant):
            item.add_marker(pytest.mark.chaos)


def _is_of_other(test: str, variant: str) -> bool:
    """Return whether a variant is for the provider whose turn it is not."""
    provider = next((number for number, name in enumerate(PROVIDERS) if name in variant), None)
    return test.startswith(OF_EACH_PROVIDER) and provider is not None and provider != zlib.crc32(test.encode()) % 2
