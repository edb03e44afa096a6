-- What the ended attempts of a run cost, by the day (UTC, counted from 1970) on which they began, by agent and lane.
CREATE TABLE agent_costs (
  day BIGINT NOT NULL,
  agent TEXT COLLATE "C" NOT NULL,
  lane TEXT COLLATE "C" NOT NULL,
  run_id TEXT COLLATE "C" NOT NULL,
  attempts BIGINT NOT NULL,
  cost BIGINT NOT NULL,
  PRIMARY KEY (day, agent, lane, run_id)
);
CREATE INDEX agent_costs_by_run ON agent_costs (run_id);
INSERT INTO agent_costs (day, agent, lane, run_id, attempts, cost)
SELECT CAST(FLOOR(attempts.started_at / 86400) AS BIGINT), COALESCE(attempts.agent, journal.agent, ''), attempts.lane,
       attempts.run_id, COUNT(*), SUM(attempts.cost)
FROM attempts JOIN runs ON runs.id = attempts.run_id
LEFT JOIN journal ON journal.run_id = attempts.run_id AND journal.key = attempts.key
WHERE attempts.state NOT IN ('started', 'parked') GROUP BY 1, 2, 3, 4;
