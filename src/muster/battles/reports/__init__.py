"""Reports of battles and scale tests."""
