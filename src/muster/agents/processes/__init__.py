"""Owned processes: started with a token, moved, bounded, ended as a whole group, and found again after a crash."""
