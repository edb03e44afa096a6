CREATE TABLE slots (
  name TEXT COLLATE "C" PRIMARY KEY,
  place BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  run_id TEXT COLLATE "C",
  failures BIGINT NOT NULL DEFAULT 0,
  error TEXT COLLATE "C" NOT NULL DEFAULT '',
  completed BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX slots_by_run ON slots (run_id) WHERE run_id IS NOT NULL;

CREATE TABLE pools (
  name TEXT COLLATE "C" PRIMARY KEY,
  created_at DOUBLE PRECISION NOT NULL,
  drain_until DOUBLE PRECISION,
  driver_host TEXT COLLATE "C",
  driver_pid BIGINT,
  driver_started TEXT COLLATE "C",
  driven_until DOUBLE PRECISION NOT NULL DEFAULT 0
);

CREATE INDEX runs_of_tasks ON runs (created_at) WHERE workload = 'task';

CREATE TABLE shared_context (
  name TEXT COLLATE "C" PRIMARY KEY,
  value TEXT COLLATE "C" NOT NULL,
  set_at DOUBLE PRECISION NOT NULL
);
