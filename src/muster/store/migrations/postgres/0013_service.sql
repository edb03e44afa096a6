-- Expressions that no other index serves: else the planner of SQLite would prefer one of those, and read all runs.
CREATE INDEX runs_due ON runs (workload, COALESCE(client, ''), created_at, id)
WHERE submitted = 1 AND COALESCE(parent_id, '') = '' AND driver_pid IS NULL
  AND CASE WHEN state = 'waiting' THEN COALESCE(ended_reason, '') <> 'awaiting_signal'
           ELSE state IN ('queued', 'interrupted') END;
CREATE INDEX runs_driven ON runs (id) WHERE driver_pid IS NOT NULL;

CREATE TABLE announcements (
  run_id TEXT COLLATE "C" PRIMARY KEY,
  seq BIGINT NOT NULL,
  tries INTEGER NOT NULL,
  due_at DOUBLE PRECISION NOT NULL
);

ALTER TABLE audit ADD COLUMN outcome TEXT COLLATE "C" NOT NULL DEFAULT 'done';
