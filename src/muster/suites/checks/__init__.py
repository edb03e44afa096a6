"""What must hold of an answer: its text, its tool calls, and what that is worth."""
