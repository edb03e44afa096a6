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
    "tests/text/secrets/test_redaction.py::test_the_work_grows_with_the_text_and_no_faster": 2,
    "tests/cli/test_closed_pipe.py": 1,
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
    "tests/verify/tools/test_pytest.py": 1,
    "tests/verify/test_failing.py": 9,
    "tests/councils/test_misbehaviour.py": 2,
    "tests/dashboard/test_hostile.py": 4,
    "tests/agents/cli/test_cli_conformance.py": 8,
    "tests/text/test_patterns.py": 2,
    "tests/text/test_json_schema.py": 2,
    "tests/text/test_cpu_limit.py": 2,
    "tests/suites/reports/test_paging.py": 1,
    "tests/suites/probes/test_fail_closed.py::test_the_command_exits_with_0_for_no_probe_of_a_sample": 2,
    "tests/text/test_json_documents.py": 6,
    "tests/text/test_json_documents.py::test_hostile_output_is_given_up_soon": 1,
    "tests/text/test_json_documents.py::test_other_hostile_output_is_gone_through_soon": 1,
    "tests/text/secrets/test_named.py": 1,
    "tests/text/test_typed.py::test_types_that_contain_the_same_types_are_first_used_in_threads_at_once": 1,
    "tests/text/test_patterns.py::test_patterns_in_a_path_have_the_same_limits": 1,
    "tests/engine/test_typed_replies.py::test_data_is_of_its_type_at_once_and_on_resume": 4,
    "tests/cli/test_line.py::test_every_help_fits_the_terminal": 1,
    "tests/test_python_examples.py::test_a_program_that_is_killed_and_started_again_asks_nothing_twice": 1,
    "tests/suites/test_slow_checks.py": 1,
    "tests/cli/test_completion.py::test_commands_options_choices_runs_and_agents_are_offered": 1,
    "tests/cli/test_machine.py::test_errors_are_wrapped_on_a_terminal_and_nowhere_else": 1,
    "tests/suites/probes/test_fail_closed.py::test_no_reply_that_says_nothing_passes_a_case": 2,
    "tests/api/test_serve.py::test_a_server_and_a_worker_wait_for_a_database_that_is_starting": 1,
    "tests/suites/format/test_damage.py": 1,
    "tests/text/test_json_paths.py::test_a_path_finds_what_the_standard_says": 5,
    "tests/cli/test_verify_agent_fix.py": 2,
    "tests/cli/test_pool.py": 6,
    "tests/agents/cli/test_hostile_prompts.py": 3,
    "tests/councils/test_votes.py": 1,
    "tests/store/test_fencing.py": 8,
    "tests/chaos/test_batch_crashes.py": 1,
    "tests/chaos/test_pauses.py": 1,
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
    "tests/cli/test_full_disk.py::test_on_a_full_disk_everything_can_be_read_and_it_is_said_that_the_disk_is_full",
    "tests/cli/test_demo.py::test_the_proof_holds_and_a_suite_is_left_with_its_report",  # `make demo` shows it
    "tests/cli/test_closed_pipe.py::test_a_run_goes_on_when_nobody_reads_its_notes",
    "tests/cli/test_one_task.py",
    "tests/cli/test_verify_agent_fix.py::test_all_of_it_shares_one_budget",
    "tests/cli/test_verify_coders.py::test_a_key_that_a_coder_writes_or_says_is_printed_by_no_command",
    "tests/cli/test_verify_hook.py::test_a_hook_asks_live_whatever_an_agent_says_and_takes_the_index_that_git_names",
    "tests/cli/test_namespaces.py::test_a_process_in_a_namespace_ends_what_it_started_and_nothing_else",
    "tests/chaos/test_suites.py::test_two_runs_of_a_suite_at_once_stay_together_under_the_cap_of_a_day",
    "tests/chaos/test_suites.py::test_a_suite_in_batches_killed_before_and_between_them_ends_as_if_nothing_had_happened",
    "tests/chaos/test_fleet.py::test_workers_whose_clocks_are_ten_minutes_wrong_harm_nobody",
    "tests/chaos/test_councils.py::test_a_council_with_a_person_survives_a_kill_in_every_phase",
    "tests/api/test_fuzzing.py",
    "tests/api/test_fleet.py::test_workers_share_the_battles_of_a_scale_test",
    "tests/api/test_hostile_schemas.py::test_a_validator_that_would_take_for_ever_decides_nothing_and_keeps_nobody_waiting",
    "tests/store/test_plans.py",
    "tests/store/test_postgres.py::test_many_who_open_an_empty_database_make_its_tables_once",
    "tests/store/test_postgres.py::test_a_wrong_password_and_an_unknown_database_are_told_apart",
    "tests/store/test_sqlite.py::test_many_processes_may_make_one_store_at_the_same_instant",
    "tests/engine/test_queue.py::test_a_client_with_a_thousand_runs_does_not_keep_others_waiting",
    "tests/engine/batches/test_batcher.py::test_endless_results_that_lack_an_answer_leave_the_run_waiting",
    "tests/pool/chains/test_durable.py::test_100_inputs_share_one_batch_for_each_step_and_provider",
    "tests/mcp/test_sizes.py::test_every_step_of_a_chain_is_read_to_its_end",
    "tests/mcp/test_sizes.py::test_a_task_is_read_in_full_with_its_prompt_log_and_calls",
    "tests/mcp/test_transports.py::test_without_the_extra_it_is_said_how_to_install_it",
    "tests/suites/evidence/test_resigned.py",
    "tests/suites/judge/test_question.py::test_the_same_question_is_spelled_alike_in_every_process",
    "tests/suites/probes/test_fail_closed.py::test_the_command_exits_with_0_for_no_reply_that_says_nothing",
    "tests/suites/reports/test_json.py::test_a_large_answer_is_whole",
    "tests/suites/format/test_suite.py::test_memory_does_not_grow_with_the_number_of_cases",
    "tests/verify/reports/test_markdown.py::test_a_report_fits_into_a_comment_whatever_is_in_it",
    "tests/verify/tools/test_mypy.py::test_real_runs_are_read_in_every_form",
    "tests/text/documents/test_yaml_reader.py::test_reading_once_gives_the_same_as_parsing_first",
    "tests/testing/test_crashes.py::test_a_run_that_does_not_end_has_failed",
    "tests/app/test_many_hands.py::test_several_who_collect_one_batch_do_not_disturb_each_other",
    "tests/battles/test_scale.py::test_a_prompt_is_not_better_because_its_judge_was_broken_before",
    # Simulations of statistics: they change with the statistics alone.
    "tests/statistics/test_paired_tests.py::test_an_agent_that_only_flickers_is_mostly_found_not_worse_when_there_are_enough_cases",
    "tests/statistics/test_paired_tests.py::test_as_many_more_cases_as_it_says_would_mostly_decide",
    "tests/statistics/test_paired_tests.py::test_for_scores_too_not_worse_comes_no_more_often_than_alpha",
    "tests/statistics/test_paired_tests.py::test_what_is_surely_worse_but_less_than_the_margin_is_not_worse_by_more_than_it",
    "tests/statistics/test_sample_size.py::test_as_many_more_epochs_as_it_says_would_mostly_decide",
    "tests/suites/compare/test_truth.py::test_a_real_change_on_a_hundred_cases_is_mostly_found",
    "tests/suites/compare/test_truth.py::test_cases_that_change_both_ways_alike_raise_no_more_alarms",
    "tests/suites/compare/test_truth.py::test_more_epochs_find_more",
    "tests/suites/compare/test_truth.py::test_without_a_difference_false_alarms_stay_below_alpha",
    "tests/suites/compare/test_notice.py::test_one_test_at_all_of_alpha_raises_no_more_false_alarms",
    "tests/suites/compare/test_notice.py::test_scores_that_say_more_than_passing_notice_as_much_as_is_told",
    "tests/suites/compare/test_notice.py::test_the_power_is_how_often_the_drop_is_noticed",
    # Large inputs, of which others in the same file are small.
    "tests/suites/format/test_finding.py::test_a_folder_with_thousands_of_other_files_is_refused",
    "tests/suites/format/test_finding.py::test_whatever_looks_like_a_suite_is_one[large.yaml",
    "tests/suites/format/test_lint.py::test_findings_are_bounded",
    "tests/suites/reports/test_html.py::test_of_a_large_run_failures_and_a_sample_are_on_the_page",
    "tests/suites/test_statistics.py::test_very_many_cases_take_little_memory",
    "tests/suites/evidence/test_tar.py::test_an_archive_of_countless_files_is_refused",
    "tests/text/documents/test_yaml_reader.py::test_what_comes_after_the_cases_is_found_across_the_pieces_of_a_file",
    "tests/text/documents/test_yaml_reader.py::test_one_case_is_bounded_and_many_are_not",
    "tests/text/test_json_documents.py::test_an_answer_after_too_much_broken_json_is_found_in_the_last_lines",
    "tests/text/test_json_schema.py::test_a_schema_may_follow_references_for_a_large_value",
    "tests/text/secrets/test_forms.py::test_every_alternative_of_every_form_is_found_and_every_hint_is_met",
    "tests/text/secrets/test_forms.py::test_the_work_grows_with_the_text_and_no_faster",
    "tests/verify/agents/test_checker.py::test_a_large_output_is_read_whole",
    "tests/verify/findings/test_merging.py::test_thousands_of_findings_on_one_line_are_merged_in_little_time",
    "tests/verify/findings/test_assessing.py::test_all_findings_are_counted_though_not_all_are_kept",
    "tests/verify/test_durable.py::test_many_small_files_are_kept_in_pages_and_all_of_them_are_read",
    "tests/mcp/test_tools.py::test_the_overview_of_a_large_project_stays_short",
    "tests/mcp/test_sizes.py::test_shared_texts_and_messages_are_listed_in_pages_and_read_in_full",
    "tests/store/test_upkeep.py::test_others_can_write_while_a_large_run_is_deleted",
    "tests/store/test_postgres_isolation.py::test_what_fits_only_one_after_the_other_waits_and_none_is_lost[160]",
    "tests/dashboard/test_suite.py::test_cases_of_a_large_suite_are_loaded_as_one_scrolls",
    # The same behaviour at another place, or with more processes, than a test that runs every time.
    "tests/engine/batches/test_lockstep.py::test_conversations_whose_results_come_page_by_page_keep_step_too",
    "tests/engine/batches/test_lost_creates.py::test_uploads_that_failed_are_counted_over_restarts",
    "tests/witness/test_kinds.py::test_a_fork_of_work_of_every_kind_pays_only_for_what_it_leaves_out",
    "tests/witness/test_kinds.py::test_waiting_work_of_every_kind_takes_its_replies_from_the_batches_that_were_left",
    "tests/witness/test_witness.py::test_commands_that_go_on_replay_and_make_new_runs_do_what_they_did[replaying]",
    "tests/cli/test_full_disk.py::test_a_server_refuses_at_once_what_it_cannot_store_and_does_it_not_later",
    "tests/cli/test_verify_hook.py::test_a_commit_without_files_goes_through_and_says_that_nothing_was_verified",
    "tests/cli/test_locks.py::test_a_vacuum_is_refused_while_a_run_is_driven_and_harms_nothing",
    "tests/api/test_hostile_schemas.py::test_a_task_whose_schema_would_take_for_ever_fails_and_the_server_goes_on",
    "tests/suites/test_council_failures.py::test_a_council_that_could_not_hold_its_last_round_judges_nothing",
    "tests/suites/test_council_failures.py::test_a_case_does_not_pass_on_the_vote_of_one_member_however_the_others_say_nothing",
    "tests/suites/test_council_judge.py::test_an_edited_policy_is_another_council_whose_members_are_asked_again",
    "tests/suites/test_council_judge.py::test_a_run_is_judged_again_by_a_council_and_back_by_one_judge",
    "tests/suites/test_durable.py::test_a_suite_that_changed_while_it_was_read_in_is_not_mixed_with_what_it_was",
    "tests/verify/test_durable.py::test_files_that_changed_while_they_were_read_in_are_not_mixed",
    "tests/verify/test_cache.py::test_in_a_batch_what_is_shared_is_marked_unless_nothing_is_to_be_cached",
    "tests/suites/probes/test_fail_closed.py::test_the_command_exits_with_0_for_what_is_sound",
    "tests/verify/tools/test_pytest.py::test_a_run_that_could_not_collect_is_no_report",
    "tests/chaos/test_pauses.py::test_answers_that_wait_in_the_socket_are_read_before_the_time_of_their_calls_is_over",
    "tests/chaos/test_pauses.py::test_what_a_program_wrote_is_read_before_its_time_is_over",
    "tests/testing/test_crashes.py::test_keys_that_differ_when_a_run_is_resumed_are_found",
    "tests/test_python_examples.py::test_a_service_goes_on_with_what_one_that_was_killed_has_left",
    "tests/text/test_patterns.py::test_many_places_share_the_time_of_one",
    "tests/text/test_json_documents.py::test_other_hostile_output_is_gone_through_soon",
    "tests/verify/declaration/test_sources.py::test_a_file_of_the_greatest_size_and_one_of_a_single_line_end_are_read",
    "tests/suites/checks/test_tools.py::test_calls_that_others_want_are_left_to_them_among_many",
    "tests/agents/cli/test_outputs.py::test_of_megabytes_that_tools_are_given_little_is_kept",
    "tests/agents/program/test_rough_programs.py::test_ten_megabytes_of_noise_do_not_hide_an_answer",
    "tests/verify/declaration/test_chunks.py::test_nothing_gives_no_chunk_and_huge_files_are_cut_in_time",
    "tests/suites/test_figures.py::test_a_bootstrap_interval_holds_the_truth_about_as_often_as_it_says",
    "tests/chaos/test_suites.py::test_a_suite_killed_while_it_is_read_in_and_asked_ends_as_if_nothing_had_happened",
    "tests/test_ci_example.py::test_what_was_recorded_is_replayed_compared_and_reported",
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
        if item.nodeid.startswith(SELDOM):
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
