CREATE TABLE reviews (
  run_id TEXT COLLATE "C" NOT NULL,
  case_id TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,
  reviewer TEXT COLLATE "C" NOT NULL,
  opinion TEXT COLLATE "C" NOT NULL,
  note TEXT COLLATE "C" NOT NULL,
  reviewed_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (run_id, case_id, subject, epoch, reviewer)
);

CREATE TABLE baselines (
  name TEXT COLLATE "C" PRIMARY KEY,
  run_id TEXT COLLATE "C" NOT NULL,
  set_at DOUBLE PRECISION NOT NULL
);
CREATE INDEX baselines_by_run ON baselines (run_id);
