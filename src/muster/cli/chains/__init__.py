"""Chains on the command line."""
