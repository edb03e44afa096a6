"""Findings in code: models that are asked about chunks of it, and checkers that are run over it."""
