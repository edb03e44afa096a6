"""What a person chooses between when files of a project are made: quick to load, since helps name it."""

FIRST_USES = {  # of what `starter` makes
    "suite": "muster run {folder} --agent sim/echo",
    "verify": "muster verify --agents {folder}/verify.yaml --changed",
    "chain": "muster chain run {folder}/chain.yaml --input topic=bees",
    "council": 'muster council "QUESTION" --policy {folder}/council.yaml',
}
STARTERS = tuple(FIRST_USES)
SCHEMA_NAMES = (*STARTERS, "toml")  # of the files that have a schema
