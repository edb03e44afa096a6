"""Councils on the command line."""
