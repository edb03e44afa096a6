"""Chains: planned, started, followed and resumed."""
