"""Commands of battles and scale tests."""
