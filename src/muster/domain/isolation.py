"""Where an agent works that changes files."""

from enum import StrEnum


class Isolation(StrEnum):
    """Where an agent works."""

    NONE = "none"  # in the user's own working tree
    WORKTREE = "worktree"  # in a linked worktree, which shares branches and objects with the repository
    CLONE = "clone"  # in a repository of its own, whose work is fetched when it is saved
