"""A file with a secret in it, which is none."""

password = "correct-horse-battery-staple"
