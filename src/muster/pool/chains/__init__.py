"""Chains: steps of prompts and commands, each with what the ones before it gave."""
