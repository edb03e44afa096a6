"""Claude Code as an agent: driven through its SDK, in a process of ours."""
