"""What a suite is made of and comes to: cases, the rules of scoring, verdicts."""
