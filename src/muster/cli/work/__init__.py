"""Commands that are made from the declarations of kinds of work."""
