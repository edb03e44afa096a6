"""Reports of verifications: one summary, and one file for each format that is made from it and the store."""
