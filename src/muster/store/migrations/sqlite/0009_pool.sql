CREATE TABLE slots (
  name TEXT PRIMARY KEY,
  place INTEGER NOT NULL,
  state TEXT NOT NULL,
  run_id TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  completed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX slots_by_run ON slots (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE pools (
  name TEXT PRIMARY KEY,
  created_at REAL NOT NULL,
  drain_until REAL,
  driver_host TEXT,
  driver_pid INTEGER,
  driver_started TEXT,
  driven_until REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE INDEX runs_of_tasks ON runs (created_at) WHERE workload = 'task';

CREATE TABLE shared_context (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  set_at REAL NOT NULL
) WITHOUT ROWID;
