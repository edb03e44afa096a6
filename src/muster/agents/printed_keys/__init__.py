"""Keys that a program of the user prints."""
