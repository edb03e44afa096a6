"""Names that other tools give to expectations, thresholds, limits and selections, which would be ignored here.

They are those of promptfoo, DeepEval, Inspect, OpenAI's evals, LangSmith, Braintrust and Ragas, and what people write
by hand. The list is closed: any other unknown name is allowed where nothing is decided. Names are compared by their
letters alone, so that `minScore`, `min-score` and `min_score` are one.
"""

from collections.abc import Mapping

_EXPECTED = "what is expected belongs into expected of a case: output, tool_sequence or rubric"
_THRESHOLD = "the score that passes is threshold of a case, or --threshold"
_LIMIT = "limits are timeout_secs and max_tokens of a case, and --budget of a run"
_SELECTION = "cases are selected by tags, skip and dataset of a case, --filter, --tags and --epochs"

_EXPECTATIONS = """
acceptance_criteria allowed_tools answer answer_key answers assert assert_equals assert_set assert_that assertion
assertions asserts banned check checks closedqa constraint constraints contains contains_all contains_any
contains_json correct correct_answer correct_output correct_response criteria criterion default_test deny disallowed
disallowed_tools ends_with equals eval evals evaluation evaluation_criteria evaluation_params evaluation_steps
evaluations evaluator_config evaluators exact_match expect expect_output expect_refusal expectation expectations
expected expected_action expected_actions expected_answer expected_behavior expected_behaviour expected_call
expected_calls expected_contains expected_files expected_json expected_messages expected_outcome expected_outcomes
expected_output expected_outputs expected_refusal expected_regex expected_response expected_result expected_results
expected_schema expected_state expected_steps expected_text expected_tool expected_tool_calls expected_tool_sequence
expected_tools expected_trajectory expected_value expected_values expects expects_refusal factuality fail_if fail_on
fail_when fails_if fails_on failure_criteria file_exists forbid forbidden forbidden_output forbidden_tools
forbidden_words forbids g_eval gold gold_answer gold_output golden golden_answer golden_diff golden_file golden_output
golden_response grade grader graders grading grading_criteria grading_rubric ground_truth ground_truths guardrail
guardrails icontains icontains_all icontains_any ideal is_json is_refusal is_valid_json json_path json_schema
judge_criteria judge_rubric judging_criteria levenshtein llm_rubric match matcher matchers matches metric metrics
model_graded_closedqa model_graded_factuality must must_call must_contain must_equal must_have must_include must_match
must_mention must_not must_not_call must_not_contain must_not_equal must_not_have must_not_include must_not_match
must_not_mention must_refuse negative_checks not_contains not_equals not_expected oracle output output_checks
output_contains output_schema outputs pass_criteria pass_if pass_on pass_when passes_if pattern prohibited reference
reference_answer reference_answers reference_output reference_outputs reference_response reference_responses
reference_solution reference_tool_calls reference_trajectory refusal regex reject rejects required required_output
required_phrases required_tools required_words response_schema rubric rubric_items rubrics schema score scorer
scorer_config scorers scores scoring semantic_similarity should should_call should_contain should_equal should_fail
should_have should_include should_match should_not should_not_call should_not_contain should_not_have
should_not_include should_not_match should_pass should_refuse similar similarity solution starts_with success_criteria
success_if target target_answer target_output target_response targets testing_criteria tool_calls tool_calls_expected
tool_order tool_sequence tool_used truth unexpected validation validations validator validators verification
verifications verifier verifiers verify want wanted wants
"""
_THRESHOLDS = """
acceptance_threshold confidence_threshold effectiveness_threshold golden_threshold max_cost max_cost_usd max_error
max_errors max_failures max_latency max_latency_ms min_pass min_pass_rate min_score min_scores minimum_pass_rate
minimum_score pass_at pass_at_k pass_mark pass_rate pass_score pass_threshold passing_rate passing_score
passing_threshold required_pass_rate required_score score_threshold similarity_threshold success_rate success_threshold
target_score threshold threshold_score thresholds tolerance
"""
_LIMITS = """
budget budget_usd cost_limit deadline deadline_ms deadline_seconds deadline_secs latency latency_ms max_budget
max_budget_usd max_duration max_duration_ms max_iterations max_messages max_seconds max_steps max_time max_tool_calls
max_total_tokens max_turns message_limit time_limit timeout timeout_millis timeout_ms timeout_s timeout_seconds
timeouts token_limit working_limit
"""
_SELECTIONS = """
condition disable disabled each enable enabled epochs exclude excludes fdescribe filter filters fit focus focused
for_each foreach if ignore ignored include includes label labels matrix only only_if parametrize pending repeat repeats
run_if run_only runs select selected selector selectors skip_if skip_reason skipped test_cases tests trials unless when
xfail xit
"""
# Of a case, and without effect above it.
_OF_CASES = "dataset skip tag tags"


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _table() -> Mapping[str, str]:
    lists = (
        (_EXPECTATIONS, _EXPECTED),
        (_THRESHOLDS, _THRESHOLD),
        (_LIMITS, _LIMIT),
        (f"{_SELECTIONS} {_OF_CASES}", _SELECTION),
    )
    return {_letters(name): advice for names, advice in lists for name in names.split()}


_ADVICE = _table()


def advice_on(name: str) -> str:
    """Return what to write instead of a name of another tool; empty for a name that decides nothing."""
    return _ADVICE.get(_letters(name), "")
