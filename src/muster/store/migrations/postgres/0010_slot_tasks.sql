CREATE TABLE slot_tasks (
  lineage TEXT PRIMARY KEY,
  slot TEXT NOT NULL,
  run_id TEXT NOT NULL
);
CREATE INDEX slot_tasks_by_slot ON slot_tasks (slot);
CREATE INDEX slot_tasks_by_run ON slot_tasks (run_id);
