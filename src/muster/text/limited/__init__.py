"""Work for strangers that has limits of CPU and memory: their patterns, and the processes that do it."""
