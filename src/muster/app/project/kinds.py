"""What a person chooses between when files of a project are made: quick to load, since helps name it."""

STARTERS = ("suite", "verify", "chain", "council")  # what `starter` makes
SCHEMA_NAMES = ("suite", "verify", "chain", "council", "toml")  # of the files that have a schema
