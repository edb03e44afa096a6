CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  name TEXT,
  workload TEXT NOT NULL,
  spec TEXT NOT NULL,
  state TEXT NOT NULL,
  ended_reason TEXT,
  error TEXT,
  result TEXT,
  tags TEXT NOT NULL,
  seed INTEGER NOT NULL,
  timeout REAL,
  concurrency INTEGER NOT NULL,
  active REAL NOT NULL DEFAULT 0,
  submitted INTEGER NOT NULL DEFAULT 0,
  parent_id TEXT,
  parent_key TEXT,
  origin_id TEXT,
  origin_reuse TEXT,
  origin_key TEXT,
  created_at REAL NOT NULL,
  started_at REAL,
  ended_at REAL,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,
  driver_host TEXT,
  driver_pid INTEGER,
  driver_started TEXT,
  lease_until REAL NOT NULL DEFAULT 0,
  last_seq INTEGER NOT NULL DEFAULT 0,
  calls_total INTEGER NOT NULL DEFAULT 0,
  calls_done INTEGER NOT NULL DEFAULT 0,
  calls_failed INTEGER NOT NULL DEFAULT 0,
  calls_uncertain INTEGER NOT NULL DEFAULT 0,
  calls_reused INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_by_state ON runs (state, created_at);
CREATE INDEX runs_by_name ON runs (name, created_at);
CREATE UNIQUE INDEX runs_by_parent ON runs (parent_id, parent_key);

CREATE TABLE budgets (
  id TEXT PRIMARY KEY,
  cap INTEGER,
  reserved INTEGER NOT NULL DEFAULT 0,
  billed INTEGER NOT NULL DEFAULT 0,
  imputed INTEGER NOT NULL DEFAULT 0,
  uncertain INTEGER NOT NULL DEFAULT 0,
  CHECK (reserved >= 0)
) WITHOUT ROWID;

CREATE TABLE journal (
  position INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL,
  key TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  digest TEXT NOT NULL,
  agent TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  request TEXT,
  outcome TEXT,
  error TEXT,
  reused_from TEXT,
  opened_at REAL NOT NULL,
  settled_at REAL
);
CREATE UNIQUE INDEX journal_by_key ON journal (run_id, key);

CREATE TABLE attempts (
  run_id TEXT NOT NULL,
  key TEXT NOT NULL,
  n INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  state TEXT NOT NULL,
  reserved INTEGER NOT NULL,
  cost INTEGER NOT NULL DEFAULT 0,
  lane TEXT NOT NULL,
  levels TEXT NOT NULL,
  started_at REAL NOT NULL,
  ended_at REAL,
  error TEXT,
  PRIMARY KEY (run_id, key, n)
) WITHOUT ROWID;

CREATE TABLE events (
  run_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at REAL NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;

CREATE TABLE partials (
  run_id TEXT NOT NULL,
  key TEXT NOT NULL,
  text TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (run_id, key)
) WITHOUT ROWID;

CREATE TABLE workers (
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started TEXT NOT NULL,
  seen_at REAL NOT NULL,
  PRIMARY KEY (host, pid, started)
) WITHOUT ROWID;
