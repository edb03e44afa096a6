-- What a run came to, with what it was made from: figures made from something else are made anew.
CREATE TABLE figures (
  run_id TEXT PRIMARY KEY,
  made_from TEXT NOT NULL,
  data TEXT NOT NULL
);
