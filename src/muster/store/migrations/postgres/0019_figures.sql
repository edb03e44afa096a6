-- What a run came to, with what it was made from: figures made from something else are made anew.
CREATE TABLE figures (
  run_id TEXT COLLATE "C" PRIMARY KEY,
  made_from TEXT COLLATE "C" NOT NULL,
  data TEXT COLLATE "C" NOT NULL
);
