CREATE TABLE reviews (
  run_id TEXT NOT NULL,
  case_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  reviewer TEXT NOT NULL,
  opinion TEXT NOT NULL,
  note TEXT NOT NULL,
  reviewed_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (run_id, case_id, subject, epoch, reviewer)
);

CREATE TABLE baselines (
  name TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  set_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX baselines_by_run ON baselines (run_id);
