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
