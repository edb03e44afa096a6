-- name: select_entry
SELECT journal.*, requests.request, outcomes.outcome FROM journal
LEFT JOIN requests ON requests.position = journal.position LEFT JOIN outcomes ON outcomes.position = journal.position
WHERE journal.run_id = :run_id AND journal.key = :key

-- name: select_entries
SELECT journal.*, requests.request, outcomes.outcome FROM journal
LEFT JOIN requests ON requests.position = journal.position LEFT JOIN outcomes ON outcomes.position = journal.position
WHERE journal.run_id = :run_id AND journal.position > :after ORDER BY journal.position LIMIT :limit

-- name: insert_call
INSERT INTO journal (run_id, key, kind, state, digest, agent, attempts, opened_at)
VALUES (:run_id, :key, 'call', 'open', :digest, :agent, 1, :at)

-- name: insert_request
INSERT INTO requests (position, request)
SELECT journal.position, v.column3 FROM (VALUES (:run_id, :key, :request)) AS v
JOIN journal ON journal.run_id = v.column1 AND journal.key = v.column2
WHERE v.column3 IS NOT NULL
ON CONFLICT (position) DO NOTHING

-- name: reopen_call
UPDATE journal SET state = 'open', attempts = v.column3, error = NULL
FROM (VALUES (:run_id, :key, CAST(:n AS BIGINT))) AS v
WHERE journal.run_id = v.column1 AND journal.key = v.column2 AND journal.state <> 'done'

-- name: finish_call
UPDATE journal SET state = 'done', error = NULL, settled_at = v.column3
FROM (VALUES (:run_id, :key, CAST(:at AS DOUBLE PRECISION))) AS v
WHERE journal.run_id = v.column1 AND journal.key = v.column2 AND journal.state <> 'done'

-- name: insert_outcome
INSERT INTO outcomes (position, outcome)
SELECT journal.position, v.column3 FROM (VALUES (:run_id, :key, :outcome)) AS v
JOIN journal ON journal.run_id = v.column1 AND journal.key = v.column2
WHERE v.column3 IS NOT NULL AND journal.state = 'done'
ON CONFLICT (position) DO NOTHING

-- name: finish_call_at
UPDATE journal SET state = 'done', error = NULL, settled_at = v.column2
FROM (VALUES (CAST(:position AS BIGINT), CAST(:at AS DOUBLE PRECISION))) AS v
WHERE journal.position = v.column1 AND journal.state <> 'done'

-- name: insert_outcome_at
INSERT INTO outcomes (position, outcome) VALUES (:position, :outcome) ON CONFLICT (position) DO NOTHING

-- name: fail_call
UPDATE journal SET state = 'failed', error = v.column3, settled_at = v.column4
FROM (VALUES (:run_id, :key, :error, CAST(:at AS DOUBLE PRECISION))) AS v
WHERE journal.run_id = v.column1 AND journal.key = v.column2 AND journal.state = 'open'

-- name: insert_entry
INSERT INTO journal (run_id, key, kind, state, digest, agent, attempts, error, reused_from, opened_at, settled_at)
VALUES (:run_id, :key, :kind, :state, :digest, :agent, :attempts, :error, :reused_from, :opened_at, :settled_at)
ON CONFLICT (run_id, key) DO NOTHING

-- name: insert_attempt
INSERT INTO attempts (run_id, key, n, epoch, state, reserved, lane, levels, started_at)
VALUES (:run_id, :key, :n, :epoch, 'started', :reserved, 'billed', :levels, :at)

-- name: settle_attempt
UPDATE attempts SET state = v.column4, cost = v.column5, lane = v.column6, ended_at = v.column7, error = v.column8
FROM (VALUES (:run_id, :key, CAST(:n AS BIGINT), :state, CAST(:cost AS BIGINT), :lane,
              CAST(:at AS DOUBLE PRECISION), :error, CAST(:epoch AS BIGINT))) AS v
WHERE attempts.run_id = v.column1 AND attempts.key = v.column2 AND attempts.n = v.column3
  AND attempts.epoch = v.column9 AND attempts.state = 'started'

-- name: resolve_attempt
UPDATE attempts SET state = :state, cost = :cost, lane = :lane, ended_at = :at, error = :error
WHERE run_id = :run_id AND key = :key AND n = :n AND state = 'uncertain'

-- name: select_attempt
SELECT * FROM attempts WHERE run_id = :run_id AND key = :key AND n = :n

-- name: select_attempts_of_call
SELECT * FROM attempts WHERE run_id = :run_id AND key = :key ORDER BY n

-- name: select_attempts
SELECT * FROM attempts WHERE run_id = :run_id ORDER BY started_at, key, n

-- name: select_attempts_in_state
SELECT * FROM attempts WHERE run_id = :run_id AND state = :state ORDER BY started_at, key, n
