"""Agents made from their names and the settings, one module for each kind."""
