"""Tests of battles and scale tests."""
