-- name: select_entry
SELECT * FROM journal WHERE run_id = :run_id AND key = :key

-- name: select_entries
SELECT * FROM journal WHERE run_id = :run_id AND position > :after ORDER BY position LIMIT :limit

-- name: insert_call
INSERT INTO journal (run_id, key, kind, state, digest, agent, attempts, request, opened_at)
VALUES (:run_id, :key, 'call', 'open', :digest, :agent, 1, :request, :at)

-- name: reopen_call
UPDATE journal SET state = 'open', attempts = :n, error = NULL
WHERE run_id = :run_id AND key = :key AND state <> 'done'

-- name: finish_call
UPDATE journal SET state = 'done', outcome = :outcome, error = NULL, settled_at = :at
WHERE run_id = :run_id AND key = :key AND state <> 'done'

-- name: fail_call
UPDATE journal SET state = 'failed', error = :error, settled_at = :at
WHERE run_id = :run_id AND key = :key AND state = 'open'

-- name: insert_entry
INSERT INTO journal (run_id, key, kind, state, digest, agent, attempts, request, outcome, error, reused_from, opened_at, settled_at)
VALUES (:run_id, :key, :kind, :state, :digest, :agent, :attempts, :request, :outcome, :error, :reused_from, :opened_at, :settled_at)
ON CONFLICT (run_id, key) DO NOTHING

-- name: insert_attempt
INSERT INTO attempts (run_id, key, n, epoch, state, reserved, lane, levels, started_at)
VALUES (:run_id, :key, :n, :epoch, 'started', :reserved, 'billed', :levels, :at)

-- name: settle_attempt
UPDATE attempts SET state = :state, cost = :cost, lane = :lane, ended_at = :at, error = :error
WHERE run_id = :run_id AND key = :key AND n = :n AND state = 'started'

-- name: resolve_attempt
UPDATE attempts SET state = :state, cost = :cost, lane = :lane, ended_at = :at, error = :error
WHERE run_id = :run_id AND key = :key AND n = :n AND state = 'uncertain'

-- name: select_attempt
SELECT * FROM attempts WHERE run_id = :run_id AND key = :key AND n = :n

-- name: select_attempts
SELECT * FROM attempts WHERE run_id = :run_id ORDER BY started_at, key, n

-- name: select_attempts_in_state
SELECT * FROM attempts WHERE run_id = :run_id AND state = :state ORDER BY started_at, key, n

-- name: delete_journal
DELETE FROM journal WHERE run_id = :run_id

-- name: delete_attempts
DELETE FROM attempts WHERE run_id = :run_id
