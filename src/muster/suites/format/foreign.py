"""Names that other tools give to expectations, thresholds and selections; where we know none, they would be ignored.

The list is closed: any other unknown name is allowed where nothing is decided. Names are compared by their letters
alone, so that `minScore`, `min-score` and `min_score` are one.
"""

from collections.abc import Mapping

_EXPECTED = "what is expected belongs into expected of a case: output, tool_sequence or rubric"
_THRESHOLD = "the score that passes is threshold of a case, or --threshold"
_SELECTION = "cases are selected by tags, skip and dataset of a case, --filter, --tags and --epochs"

_EXPECTATIONS = """
acceptance_criteria answer answers assert assertion assertions asserts check checks contains contains_json
correct_answer criteria equals eval evals evaluation evaluations evaluator_config evaluators expect expectation
expectations expected expected_answer expected_behavior expected_behaviour expected_output expected_outputs
expected_response expected_result expected_results expected_tool_calls expected_tools expects failure_criteria forbidden
golden golden_answer golden_diff golden_output grade grader graders grading ground_truth ideal is_json json_path
json_schema metric metrics must_contain must_include must_match must_not_contain must_not_include not_contains output
output_schema outputs pass_criteria reference_answer reference_output regex required_tools response_schema rubric
rubrics scorer scorers scoring should_contain should_not_contain success_criteria target_output tool_calls tool_sequence
validation validations validator validators
"""
_THRESHOLDS = """
effectiveness_threshold golden_threshold max_cost max_cost_usd max_failures max_latency max_latency_ms min_pass_rate
min_score minimum_score pass_rate pass_score pass_threshold passing_score passing_threshold required_score
score_threshold threshold thresholds
"""
_SELECTIONS = """
condition disable disabled each enable enabled epochs exclude excludes fdescribe filter filters fit focus focused
for_each foreach if ignore ignored include includes label labels matrix only only_if parametrize pending repeat repeats
run_if run_only runs select selected selector selectors skip_if skip_reason skipped test_cases tests trials unless when
xfail xit
"""
# Of a case, and without effect above it.
_OF_CASES = "dataset skip tags"


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _table() -> Mapping[str, str]:
    lists = ((_EXPECTATIONS, _EXPECTED), (_THRESHOLDS, _THRESHOLD), (f"{_SELECTIONS} {_OF_CASES}", _SELECTION))
    return {_letters(name): advice for names, advice in lists for name in names.split()}


_ADVICE = _table()


def advice_on(name: str) -> str:
    """Return what to write instead of a name of another tool; empty for a name that decides nothing."""
    return _ADVICE.get(_letters(name), "")
