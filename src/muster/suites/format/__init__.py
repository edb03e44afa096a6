"""Suites as people write them: read with line numbers, checked, resolved into cases."""
