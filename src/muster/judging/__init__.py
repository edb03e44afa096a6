"""Asking a model for a structured verdict and reading it strictly."""
