"""Test cases written by a model."""
