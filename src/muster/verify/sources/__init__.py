"""The files that are verified: found, read, cut into pieces, with their markers."""
