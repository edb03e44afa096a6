"""Who says whether an answer is good: a model with a rubric, or a command of the user's."""
