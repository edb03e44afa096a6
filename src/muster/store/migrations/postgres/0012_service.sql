CREATE INDEX runs_due ON runs (workload, COALESCE(client, ''), created_at, id)
WHERE submitted = 1 AND COALESCE(parent_id, '') = '' AND driver_pid IS NULL
  AND (state IN ('queued', 'interrupted') OR (state = 'waiting' AND COALESCE(ended_reason, '') <> 'awaiting_signal'));
CREATE INDEX runs_driven ON runs (id) WHERE driver_pid IS NOT NULL;

CREATE TABLE announcements (
  run_id TEXT PRIMARY KEY,
  seq BIGINT NOT NULL,
  tries INTEGER NOT NULL,
  due_at DOUBLE PRECISION NOT NULL
);

ALTER TABLE audit ADD COLUMN outcome TEXT NOT NULL DEFAULT 'done';
