"""Documents, and the program that makes some of them from the code."""
