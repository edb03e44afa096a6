"""What checkers write, read without running them: one parser for each, all of them pure and none of them trusting."""
