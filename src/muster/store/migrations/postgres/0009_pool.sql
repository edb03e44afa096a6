CREATE TABLE slots (
  name TEXT PRIMARY KEY,
  place BIGINT NOT NULL,
  state TEXT NOT NULL,
  run_id TEXT,
  failures BIGINT NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  completed BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX slots_by_run ON slots (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE pools (
  name TEXT PRIMARY KEY,
  created_at DOUBLE PRECISION NOT NULL,
  drain_until DOUBLE PRECISION,
  driver_host TEXT,
  driver_pid BIGINT,
  driver_started TEXT,
  driven_until DOUBLE PRECISION NOT NULL DEFAULT 0
);

CREATE INDEX runs_of_tasks ON runs (created_at) WHERE workload = 'task';

CREATE TABLE shared_context (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  set_at DOUBLE PRECISION NOT NULL
);
