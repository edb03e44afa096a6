ALTER TABLE runs ADD COLUMN dispatch TEXT COLLATE "C";

ALTER TABLE attempts ADD COLUMN agent TEXT COLLATE "C";
ALTER TABLE attempts ADD COLUMN batch_id TEXT COLLATE "C";
ALTER TABLE attempts ADD COLUMN place BIGINT;
ALTER TABLE attempts ADD COLUMN size BIGINT;
ALTER TABLE attempts ADD COLUMN max_tokens BIGINT;
ALTER TABLE attempts ADD COLUMN live_cost BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX attempts_by_batch ON attempts (batch_id, place) WHERE batch_id IS NOT NULL;

CREATE TABLE batches (
  id TEXT COLLATE "C" PRIMARY KEY,
  desk TEXT COLLATE "C" NOT NULL,
  account TEXT COLLATE "C" NOT NULL,
  nonce TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  bytes BIGINT NOT NULL,
  tariffs TEXT COLLATE "C" NOT NULL,
  provider_id TEXT COLLATE "C",
  file TEXT COLLATE "C",
  driver_host TEXT COLLATE "C",
  driver_pid BIGINT,
  driver_started TEXT COLLATE "C",
  created_at DOUBLE PRECISION NOT NULL,
  sent_at DOUBLE PRECISION,
  submitted_at DOUBLE PRECISION,
  ended_at DOUBLE PRECISION,
  collected_at DOUBLE PRECISION,
  cancel_requested BIGINT NOT NULL DEFAULT 0,
  adopted BIGINT NOT NULL DEFAULT 0,
  rejected TEXT COLLATE "C" NOT NULL DEFAULT '[]',
  done BIGINT,
  word TEXT COLLATE "C" NOT NULL DEFAULT '',
  polled_at DOUBLE PRECISION,
  note TEXT COLLATE "C" NOT NULL DEFAULT '',
  error TEXT COLLATE "C",
  reserved BIGINT NOT NULL DEFAULT 0,
  cost BIGINT NOT NULL DEFAULT 0,
  live_cost BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  succeeded BIGINT NOT NULL DEFAULT 0,
  errored BIGINT NOT NULL DEFAULT 0,
  canceled BIGINT NOT NULL DEFAULT 0,
  expired BIGINT NOT NULL DEFAULT 0,
  uncertain BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX batches_by_state ON batches (state, created_at);
CREATE UNIQUE INDEX batches_by_provider ON batches (account, provider_id) WHERE provider_id IS NOT NULL;

CREATE TABLE batch_runs (
  batch_id TEXT COLLATE "C" NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  members BIGINT NOT NULL,
  PRIMARY KEY (batch_id, run_id)
);
CREATE INDEX batch_runs_by_run ON batch_runs (run_id);

CREATE TABLE batch_bodies (
  batch_id TEXT COLLATE "C" NOT NULL,
  part BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (batch_id, part)
);

CREATE TABLE batch_lines (
  batch_id TEXT COLLATE "C" NOT NULL,
  part BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (batch_id, part)
);

CREATE TABLE traits (
  name TEXT COLLATE "C" PRIMARY KEY,
  value TEXT COLLATE "C" NOT NULL
);
