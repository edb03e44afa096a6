-- name: total_runs
SELECT workload, state, COUNT(*) AS number, SUM(calls_done) AS done, SUM(calls_failed) AS failed,
       SUM(calls_uncertain) AS uncertain, SUM(calls_reused) AS reused
FROM runs GROUP BY workload, state ORDER BY workload, state

-- name: total_batches
SELECT state, COUNT(*) AS number FROM batches GROUP BY state ORDER BY state

-- name: total_slots
SELECT state, CASE WHEN run_id IS NULL THEN 0 ELSE 1 END AS busy, COUNT(*) AS number
FROM slots GROUP BY state, CASE WHEN run_id IS NULL THEN 0 ELSE 1 END ORDER BY state, busy

-- name: total_money
SELECT COALESCE(SUM(reserved), 0) AS reserved, COALESCE(SUM(billed), 0) AS billed,
       COALESCE(SUM(imputed), 0) AS imputed, COALESCE(SUM(uncertain), 0) AS uncertain
FROM budgets WHERE id >= 'day:' AND id < 'day;'

-- name: select_levels
SELECT id, cap, reserved, billed, imputed, uncertain FROM budgets WHERE id >= :low AND id < :high ORDER BY id

-- name: total_agents
SELECT agent, lane, SUM(attempts) AS number, SUM(cost) AS cost FROM agent_costs
WHERE day >= :day GROUP BY agent, lane ORDER BY agent, lane

-- name: delete_agent_costs
DELETE FROM agent_costs WHERE run_id = :run_id

-- name: dearest_runs
WITH dearest (id, paid) AS (
  SELECT runs.id, total.billed + total.imputed + total.uncertain FROM runs
  JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
  WHERE runs.created_at >= :since AND COALESCE(runs.parent_id, '') = '' 
    AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.id = runs.continued_by)
    AND total.billed + total.imputed + total.uncertain > 0
  ORDER BY 2 DESC, runs.created_at DESC, runs.id DESC LIMIT :limit
)
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM dearest JOIN runs ON runs.id = dearest.id JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
ORDER BY dearest.paid DESC, runs.created_at DESC, runs.id DESC
