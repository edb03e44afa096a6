"""The starter suite: small, valid, and with a comment on each part."""

from collections.abc import Mapping

_CASES = """\
# A suite: what an agent is asked, and what a good answer must contain.
#   muster validate {name}                  is it valid?
#   muster run {name} --agent sim/echo      try it without a key
schema_version: 1
skill_or_agent: {name} # ids of cases begin with this

defaults:
  timeout_secs: 60
  tags: [happy-path] # for cases without tags
  evaluator: rules # rules, golden, process or judge; a case may choose another

cases:
  # The simplest case: one question, and checks that need no model.
  - id: {name}/greets-by-name
    description: The agent greets people by their name.
    tags: [smoke, happy-path]
    input:
      messages:
        - role: user
          content: Please greet Ada Lovelace.
    expected:
      output: # contains, not_contains, equals, regex, json_path, json_schema, is_json, contains_json, golden_diff
        - kind: contains
          value: Ada
        - kind: not_contains
          value: As an AI

  # A rubric: several criteria, each with a weight.
  # With `evaluator: judge` and `muster run --judge AGENT` a model scores them by their descriptions.
  - id: {name}/names-the-order
    description: The agent refers to the order that the customer asks about.
    input:
      messages:
        - role: user
          content: My order 4711 has not arrived. I am Ada.
    expected:
      rubric:
        - id: names-order
          description: The answer names the order 4711.
          weight: 0.7
          critical: true # if this item is below the threshold, the case fails
          auto_check:
            kind: regex
            value: '\\b4711\\b'
        - id: names-person
          description: The answer speaks to Ada by name.
          weight: 0.3
          auto_check:
            kind: contains
            value: Ada

  # JSON: a check can select one place in the answer.
  - id: {name}/gives-json
    description: The agent gives the order back as JSON.
    input:
      messages:
        - role: user
          content: 'Give this back as it is: {{"order": 4711, "state": "shipped"}}'
    expected:
      output:
        - kind: json_path
          field: $.state
          value: shipped

  # A conversation: what the user says after each answer.
  - id: {name}/stays-on-the-order
    description: The agent still knows the order in the second turn.
    tags: [edge-case]
    input:
      messages:
        - role: user
          content: My order is 4711.
      follow_ups:
        - Please cancel order 4711.
    expected:
      output:
        - kind: contains
          value: '4711'
        - kind: contains
          value: '4711'
          turn: 1

  # Similarity to a file, line by line.
  - id: {name}/copies-a-list
    description: The agent copies a list without changing it.
    tags: [edge-case]
    input:
      messages:
        - role: user
          content: |
            Copy this list and write nothing else:
            - one apple
            - two pears
            - three plums
            - four figs
    evaluator_config:
      evaluator: golden
      golden_path: golden/list.txt
      golden_threshold: 0.8
"""

_PROMPT = """\
You are the friendly front desk of a small shop. Answer in one or two sentences.
This file is the system prompt under test: change it, run the suite again, and compare.
"""

_LIST = """\
- one apple
- two pears
- three plums
- four figs
"""


def starter(name: str) -> Mapping[str, str]:
    """Return the files of a new suite by their paths in its folder."""
    return {"cases.yaml": _CASES.format(name=name), "prompt.md": _PROMPT, "golden/list.txt": _LIST}
