"""Findings: merged, assessed and fixed."""
