-- name: next_due_workload
SELECT runs.workload FROM runs
WHERE runs.submitted = 1 AND COALESCE(runs.parent_id, '') = '' AND runs.driver_pid IS NULL AND runs.continued_by IS NULL
  AND CASE WHEN runs.state = 'waiting' THEN COALESCE(runs.ended_reason, '') <> 'awaiting_signal'
           ELSE runs.state IN ('queued', 'interrupted') END
  AND runs.workload > :after
ORDER BY runs.workload LIMIT 1

-- name: first_due_client
SELECT COALESCE(runs.client, '') AS client FROM runs
WHERE runs.submitted = 1 AND COALESCE(runs.parent_id, '') = '' AND runs.driver_pid IS NULL AND runs.continued_by IS NULL
  AND CASE WHEN runs.state = 'waiting' THEN COALESCE(runs.ended_reason, '') <> 'awaiting_signal'
           ELSE runs.state IN ('queued', 'interrupted') END
  AND runs.workload = :workload
ORDER BY COALESCE(runs.client, '') LIMIT 1

-- name: next_due_client
SELECT COALESCE(runs.client, '') AS client FROM runs
WHERE runs.submitted = 1 AND COALESCE(runs.parent_id, '') = '' AND runs.driver_pid IS NULL AND runs.continued_by IS NULL
  AND CASE WHEN runs.state = 'waiting' THEN COALESCE(runs.ended_reason, '') <> 'awaiting_signal'
           ELSE runs.state IN ('queued', 'interrupted') END
  AND runs.workload = :workload AND COALESCE(runs.client, '') > :after
ORDER BY COALESCE(runs.client, '') LIMIT 1

-- name: select_due
SELECT runs.id, runs.created_at FROM runs
WHERE runs.submitted = 1 AND COALESCE(runs.parent_id, '') = '' AND runs.driver_pid IS NULL AND runs.continued_by IS NULL
  AND CASE WHEN runs.state = 'waiting' THEN COALESCE(runs.ended_reason, '') <> 'awaiting_signal'
           ELSE runs.state IN ('queued', 'interrupted') END
  AND runs.workload = :workload AND COALESCE(runs.client, '') = :client
ORDER BY runs.created_at, runs.id LIMIT :limit

-- name: count_starts
SELECT COUNT(*) AS starts, MIN(created_at) AS oldest FROM runs
WHERE created_at > :since AND client = :client AND id <> :id

-- name: select_starts
SELECT client, created_at FROM runs WHERE created_at > :since AND client IS NOT NULL ORDER BY created_at, id
