CREATE TABLE reviews (
  run_id TEXT NOT NULL,
  case_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  reviewer TEXT NOT NULL,
  opinion TEXT NOT NULL,
  note TEXT NOT NULL,
  reviewed_at REAL NOT NULL,
  PRIMARY KEY (run_id, case_id, subject, epoch, reviewer)
) WITHOUT ROWID;

CREATE TABLE baselines (
  name TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  set_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX baselines_by_run ON baselines (run_id);
