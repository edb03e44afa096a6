-- What the ended attempts of a run cost, by the day (UTC, counted from 1970) on which they began, by agent and lane.
CREATE TABLE agent_costs (
  day INTEGER NOT NULL,
  agent TEXT NOT NULL,
  lane TEXT NOT NULL,
  run_id TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  PRIMARY KEY (day, agent, lane, run_id)
) WITHOUT ROWID;
CREATE INDEX agent_costs_by_run ON agent_costs (run_id);
INSERT INTO agent_costs (day, agent, lane, run_id, attempts, cost)
SELECT CAST(attempts.started_at / 86400 AS INTEGER), COALESCE(attempts.agent, journal.agent, ''), attempts.lane,
       attempts.run_id, COUNT(*), SUM(attempts.cost)
FROM attempts JOIN runs ON runs.id = attempts.run_id
LEFT JOIN journal ON journal.run_id = attempts.run_id AND journal.key = attempts.key
WHERE attempts.state NOT IN ('started', 'parked') GROUP BY 1, 2, 3, 4;
