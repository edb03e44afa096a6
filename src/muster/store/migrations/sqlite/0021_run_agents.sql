-- The agents that a run, or a run under it, has called, for lists of runs: the newest of an agent stand together.
CREATE TABLE run_agents (
  agent TEXT NOT NULL,
  created_at REAL NOT NULL,
  run_id TEXT NOT NULL,
  PRIMARY KEY (agent, created_at, run_id)
) WITHOUT ROWID;
CREATE INDEX run_agents_by_run ON run_agents (run_id);
INSERT INTO run_agents (agent, created_at, run_id)
WITH RECURSIVE within (agent, id, created_at, parent_id) AS (
  SELECT journal.agent, runs.id, runs.created_at, runs.parent_id FROM journal JOIN runs ON runs.id = journal.run_id
  WHERE journal.kind = 'call' AND journal.agent IS NOT NULL
  UNION
  SELECT within.agent, runs.id, runs.created_at, runs.parent_id FROM within JOIN runs ON runs.id = within.parent_id
)
SELECT DISTINCT agent, created_at, id FROM within;
