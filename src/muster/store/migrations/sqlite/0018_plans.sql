-- What lists and counts look for, so that none of them reads all that was ever stored.
CREATE INDEX batches_by_creation ON batches (created_at, id);
CREATE INDEX batches_by_provider_id ON batches (provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (owner, created_at, id) WHERE owner IS NOT NULL;
-- An expression that no other index serves: else the planner of SQLite would prefer this one for the newest tasks.
CREATE INDEX runs_by_workload ON runs (COALESCE(workload, ''), state, created_at, id, lineage);
DROP INDEX runs_by_lineage;
CREATE INDEX runs_by_lineage ON runs (lineage, created_at, id) WHERE lineage IS NOT NULL;

-- The runs that count under the budgets of runs above them: those budgets are deleted with the last of them.
CREATE TABLE run_levels (
  level TEXT NOT NULL,
  run_id TEXT NOT NULL,
  PRIMARY KEY (level, run_id)
) WITHOUT ROWID;
CREATE INDEX run_levels_by_run ON run_levels (run_id);
INSERT OR IGNORE INTO run_levels (level, run_id)
SELECT above.value, runs.id FROM runs JOIN json_each(runs.levels, '$.above') AS above
WHERE runs.levels IS NOT NULL AND (above.value LIKE 'run:%' OR above.value LIKE 'lineage:%');

-- From now on a run's batches are known until the last of it is deleted: what interrupted deletions have left goes now.
DELETE FROM batch_bodies WHERE batch_id NOT IN (SELECT batch_id FROM batch_runs);
DELETE FROM batch_lines WHERE batch_id NOT IN (SELECT batch_id FROM batch_runs);
