-- name: select_slots
SELECT * FROM slots ORDER BY place, name

-- name: insert_slot
INSERT INTO slots (name, place, state) VALUES (:name, :place, :state) ON CONFLICT (name) DO NOTHING

-- name: update_slot
UPDATE slots SET state = :state, failures = :failures, error = :error, completed = :completed WHERE name = :name

-- name: note_outcome
UPDATE slots SET failures = :failures, error = :error, completed = completed + :completed,
                 state = CASE WHEN :errored = 1 AND state = 'active' THEN 'errored' ELSE state END
WHERE name = :name

-- name: delete_slot
DELETE FROM slots WHERE name = :name AND run_id IS NULL

-- name: assign_slot
UPDATE slots SET run_id = :run_id
WHERE name = :name AND state = 'active' AND run_id IS NULL
  AND NOT EXISTS (SELECT 1 FROM slots AS other WHERE other.run_id = :run_id)

-- name: free_slot
UPDATE slots SET run_id = NULL WHERE name = :name AND run_id = :run_id

-- name: put_slot_task
INSERT INTO slot_tasks (lineage, slot, run_id)
SELECT COALESCE(runs.lineage, 'run:' || runs.id), :name, runs.id FROM runs WHERE runs.id = :run_id
ON CONFLICT (lineage) DO UPDATE SET slot = excluded.slot, run_id = excluded.run_id

-- name: select_slot_tasks
SELECT slot_tasks.run_id FROM slot_tasks JOIN runs ON runs.id = slot_tasks.run_id
WHERE slot_tasks.slot = :slot ORDER BY runs.created_at DESC, runs.id DESC LIMIT :limit

-- name: put_task_work
UPDATE slot_tasks SET work = :work WHERE lineage = :lineage

-- name: select_task_work
SELECT work FROM slot_tasks WHERE lineage = :lineage

-- name: sum_slot_costs
SELECT slot_tasks.slot, SUM(budgets.reserved) AS reserved, SUM(budgets.billed) AS billed,
       SUM(budgets.imputed) AS imputed, SUM(budgets.uncertain) AS uncertain
FROM slot_tasks JOIN budgets ON budgets.id = slot_tasks.lineage GROUP BY slot_tasks.slot

-- name: delete_slot_tasks
DELETE FROM slot_tasks WHERE run_id = :run_id

-- name: select_pool
SELECT * FROM pools WHERE name = :name

-- name: insert_pool
INSERT INTO pools (name, created_at) VALUES (:name, :created_at) ON CONFLICT (name) DO NOTHING

-- name: drain_pool
UPDATE pools SET drain_until = :until WHERE name = :name

-- name: drive_pool
UPDATE pools SET driver_host = :host, driver_pid = :pid, driver_started = :started, driven_until = :until,
    drain_until = CASE WHEN driver_host = :host AND driver_pid = :pid AND driver_started = :started THEN drain_until END
WHERE name = :name
  AND (driver_pid IS NULL OR (driver_host = :host_before AND driver_pid = :pid_before AND driver_started = :started_before))

-- name: leave_pool
UPDATE pools SET driver_host = NULL, driver_pid = NULL, driver_started = NULL, driven_until = 0
WHERE name = :name AND driver_host = :host AND driver_pid = :pid AND driver_started = :started

-- name: select_task_runs
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE COALESCE(runs.workload, '') = 'task' AND runs.state = :state
ORDER BY runs.created_at, runs.id LIMIT :limit

-- name: select_newest_task_runs
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE runs.workload = 'task' AND (runs.created_at, runs.id) < (:created_at, :id)
  AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.lineage = runs.lineage
                  AND (later.created_at, later.id) > (runs.created_at, runs.id))
ORDER BY runs.created_at DESC, runs.id DESC LIMIT :limit

-- name: count_task_runs
SELECT runs.state, COUNT(*) AS number FROM runs
WHERE COALESCE(runs.workload, '') = 'task'
  AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.lineage = runs.lineage
                  AND (later.created_at, later.id) > (runs.created_at, runs.id))
GROUP BY runs.state

-- name: put_context
INSERT INTO shared_context (name, value, set_at) VALUES (:name, :value, :set_at)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, set_at = excluded.set_at

-- name: delete_context
DELETE FROM shared_context WHERE name = :name

-- name: select_contexts
SELECT * FROM shared_context ORDER BY name
