ALTER TABLE runs ADD COLUMN dispatch TEXT;

ALTER TABLE attempts ADD COLUMN agent TEXT;
ALTER TABLE attempts ADD COLUMN batch_id TEXT;
ALTER TABLE attempts ADD COLUMN place INTEGER;
ALTER TABLE attempts ADD COLUMN size INTEGER;
ALTER TABLE attempts ADD COLUMN max_tokens INTEGER;
ALTER TABLE attempts ADD COLUMN live_cost INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX attempts_by_batch ON attempts (batch_id, place) WHERE batch_id IS NOT NULL;

CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  desk TEXT NOT NULL,
  account TEXT NOT NULL,
  nonce TEXT NOT NULL,
  state TEXT NOT NULL,
  requests INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  tariffs TEXT NOT NULL,
  provider_id TEXT,
  file TEXT,
  driver_host TEXT,
  driver_pid INTEGER,
  driver_started TEXT,
  created_at REAL NOT NULL,
  sent_at REAL,
  submitted_at REAL,
  ended_at REAL,
  collected_at REAL,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  adopted INTEGER NOT NULL DEFAULT 0,
  rejected TEXT NOT NULL DEFAULT '[]',
  done INTEGER,
  word TEXT NOT NULL DEFAULT '',
  polled_at REAL,
  note TEXT NOT NULL DEFAULT '',
  error TEXT,
  reserved INTEGER NOT NULL DEFAULT 0,
  cost INTEGER NOT NULL DEFAULT 0,
  live_cost INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  succeeded INTEGER NOT NULL DEFAULT 0,
  errored INTEGER NOT NULL DEFAULT 0,
  canceled INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  uncertain INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX batches_by_state ON batches (state, created_at);
CREATE UNIQUE INDEX batches_by_provider ON batches (account, provider_id) WHERE provider_id IS NOT NULL;

CREATE TABLE batch_runs (
  batch_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  members INTEGER NOT NULL,
  PRIMARY KEY (batch_id, run_id)
) WITHOUT ROWID;
CREATE INDEX batch_runs_by_run ON batch_runs (run_id);

CREATE TABLE batch_bodies (
  batch_id TEXT NOT NULL,
  part INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (batch_id, part)
);

CREATE TABLE batch_lines (
  batch_id TEXT NOT NULL,
  part INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (batch_id, part)
);

CREATE TABLE traits (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
