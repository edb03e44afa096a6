CREATE TABLE slot_tasks (
  lineage TEXT COLLATE "C" PRIMARY KEY,
  slot TEXT COLLATE "C" NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX slot_tasks_by_slot ON slot_tasks (slot);
CREATE INDEX slot_tasks_by_run ON slot_tasks (run_id);
