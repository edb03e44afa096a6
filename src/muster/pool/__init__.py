"""The pool: tasks for slots, chains of steps, and how they are put together."""
