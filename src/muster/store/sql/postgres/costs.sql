-- name: count_attempts
-- A number that is cast is rounded here.
WITH ended (run_id, key, n) AS (VALUES (:run_id, :key, CAST(:n AS BIGINT)))
INSERT INTO agent_costs (day, agent, lane, run_id, attempts, cost)
SELECT CAST(FLOOR(attempts.started_at / 86400) AS BIGINT), COALESCE(attempts.agent, journal.agent, ''), attempts.lane,
       attempts.run_id, COUNT(*), SUM(attempts.cost)
FROM ended JOIN attempts ON attempts.run_id = ended.run_id AND attempts.key = ended.key AND attempts.n = ended.n
LEFT JOIN journal ON journal.run_id = attempts.run_id AND journal.key = attempts.key
WHERE TRUE GROUP BY 1, 2, 3, 4
ON CONFLICT (day, agent, lane, run_id) DO UPDATE
SET attempts = agent_costs.attempts + excluded.attempts,
    cost = CASE WHEN agent_costs.cost + excluded.cost > 1152921504606846976 THEN 1152921504606846976
                ELSE agent_costs.cost + excluded.cost END

-- name: uncount_attempt
UPDATE agent_costs SET attempts = agent_costs.attempts - 1, cost = agent_costs.cost - attempts.cost
FROM attempts LEFT JOIN journal ON journal.run_id = attempts.run_id AND journal.key = attempts.key
WHERE attempts.run_id = :run_id AND attempts.key = :key AND attempts.n = :n AND attempts.state = 'uncertain'
  AND agent_costs.day = CAST(FLOOR(attempts.started_at / 86400) AS BIGINT)
  AND agent_costs.agent = COALESCE(attempts.agent, journal.agent, '')
  AND agent_costs.lane = attempts.lane AND agent_costs.run_id = attempts.run_id
