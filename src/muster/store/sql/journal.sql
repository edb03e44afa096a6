-- name: select_entry
SELECT journal.*, requests.request, outcomes.outcome FROM journal
LEFT JOIN requests ON requests.position = journal.position LEFT JOIN outcomes ON outcomes.position = journal.position
WHERE journal.run_id = :run_id AND journal.key = :key

-- name: select_entries
SELECT journal.*, requests.request, outcomes.outcome FROM journal
LEFT JOIN requests ON requests.position = journal.position LEFT JOIN outcomes ON outcomes.position = journal.position
WHERE journal.run_id = :run_id AND journal.position > :after ORDER BY journal.position LIMIT :limit

-- name: select_done
SELECT key, kind, digest FROM journal WHERE run_id = :run_id AND state = 'done' ORDER BY position

-- name: insert_call
INSERT INTO journal (run_id, key, kind, state, digest, agent, attempts, opened_at)
VALUES (:run_id, :key, 'call', 'open', :digest, :agent, 1, :at)

-- name: insert_request
WITH call (run_id, key, request) AS (VALUES (:run_id, :key, :request))
INSERT INTO requests (position, request)
SELECT journal.position, call.request FROM call
JOIN journal ON journal.run_id = call.run_id AND journal.key = call.key
WHERE call.request IS NOT NULL
ON CONFLICT (position) DO NOTHING

-- name: reopen_call
WITH call (run_id, key, n) AS (VALUES (:run_id, :key, CAST(:n AS BIGINT)))
UPDATE journal SET state = 'open', attempts = call.n, error = NULL FROM call
WHERE journal.run_id = call.run_id AND journal.key = call.key AND journal.state <> 'done'

-- name: finish_call
WITH call (run_id, key, at) AS (VALUES (:run_id, :key, CAST(:at AS DOUBLE PRECISION)))
UPDATE journal SET state = 'done', error = NULL, settled_at = call.at FROM call
WHERE journal.run_id = call.run_id AND journal.key = call.key AND journal.state <> 'done'

-- name: insert_outcome
WITH call (run_id, key, outcome) AS (VALUES (:run_id, :key, :outcome))
INSERT INTO outcomes (position, outcome)
SELECT journal.position, call.outcome FROM call
JOIN journal ON journal.run_id = call.run_id AND journal.key = call.key
WHERE call.outcome IS NOT NULL AND journal.state = 'done'
ON CONFLICT (position) DO NOTHING

-- name: finish_call_at
WITH call (position, at) AS (VALUES (CAST(:position AS BIGINT), CAST(:at AS DOUBLE PRECISION)))
UPDATE journal SET state = 'done', error = NULL, settled_at = call.at FROM call
WHERE journal.position = call.position AND journal.state <> 'done'

-- name: insert_outcome_at
INSERT INTO outcomes (position, outcome) VALUES (:position, :outcome) ON CONFLICT (position) DO NOTHING

-- name: fail_call
WITH call (run_id, key, error, at) AS (VALUES (:run_id, :key, :error, CAST(:at AS DOUBLE PRECISION)))
UPDATE journal SET state = 'failed', error = call.error, settled_at = call.at FROM call
WHERE journal.run_id = call.run_id AND journal.key = call.key AND journal.state = 'open'

-- name: insert_entry
INSERT INTO journal (run_id, key, kind, state, digest, agent, attempts, error, reused_from, opened_at, settled_at)
VALUES (:run_id, :key, :kind, :state, :digest, :agent, :attempts, :error, :reused_from, :opened_at, :settled_at)
ON CONFLICT (run_id, key) DO NOTHING

-- name: insert_attempt
INSERT INTO attempts (run_id, key, n, epoch, state, reserved, lane, levels, started_at)
VALUES (:run_id, :key, :n, :epoch, 'started', :reserved, 'billed', :levels, :at)

-- name: settle_attempt
WITH settled (run_id, key, n, state, cost, lane, at, error, epoch, live_cost) AS (
  VALUES (:run_id, :key, CAST(:n AS BIGINT), :state, CAST(:cost AS BIGINT), :lane,
          CAST(:at AS DOUBLE PRECISION), :error, CAST(:epoch AS BIGINT), CAST(:live_cost AS BIGINT))
)
UPDATE attempts
SET state = settled.state, cost = settled.cost, lane = settled.lane, ended_at = settled.at, error = settled.error,
    live_cost = settled.live_cost
FROM settled
WHERE attempts.run_id = settled.run_id AND attempts.key = settled.key AND attempts.n = settled.n
  AND attempts.epoch = settled.epoch AND attempts.state = 'started'

-- name: resolve_attempt
UPDATE attempts SET state = :state, cost = :cost, lane = :lane, ended_at = :at, error = :error, live_cost = :live_cost
WHERE run_id = :run_id AND key = :key AND n = :n AND state = 'uncertain'

-- name: select_attempt
SELECT * FROM attempts WHERE run_id = :run_id AND key = :key AND n = :n

-- name: select_attempts_of_call
SELECT * FROM attempts WHERE run_id = :run_id AND key = :key ORDER BY n

-- name: select_attempts
SELECT * FROM attempts WHERE run_id = :run_id ORDER BY started_at, key, n

-- name: select_attempts_in_state
SELECT * FROM attempts WHERE run_id = :run_id AND state = :state ORDER BY started_at, key, n

-- name: reopen_question
UPDATE journal SET state = 'open', error = NULL, opened_at = :at, settled_at = NULL
WHERE run_id = :run_id AND key = :key AND state = 'failed'

-- name: select_unanswered_questions
WITH RECURSIVE tree (id) AS (
  SELECT id FROM runs WHERE id = :run_id
  UNION SELECT runs.id FROM runs JOIN tree ON runs.parent_id = tree.id
)
SELECT journal.*, requests.request, NULL AS outcome FROM journal
JOIN runs ON runs.id = journal.run_id LEFT JOIN requests ON requests.position = journal.position
WHERE journal.run_id IN (SELECT id FROM tree) AND journal.kind = 'call' AND journal.state = 'open' AND journal.attempts = 0
  AND runs.state NOT IN ('completed', 'failed', 'canceled', 'timeout')
  AND NOT EXISTS (
    SELECT 1 FROM signals WHERE signals.address = COALESCE(runs.lineage, 'run:' || runs.id)
      AND signals.channel = 'answer/' || journal.key AND signals.taken_by IS NULL
  )
ORDER BY journal.position

-- name: select_answer_of_client
WITH RECURSIVE tree (id) AS (
  SELECT id FROM runs WHERE id = :run_id OR lineage = (SELECT lineage FROM runs WHERE id = :run_id)
  UNION SELECT runs.id FROM runs JOIN tree ON runs.parent_id = tree.id
)
SELECT signals.*, runs.id AS run_id FROM tree JOIN runs ON runs.id = tree.id
JOIN signals ON signals.address = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE signals.client_id = :client_id AND substr(signals.channel, 1, 7) = 'answer/'
ORDER BY CASE WHEN runs.created_at <= signals.sent_at THEN 0 ELSE 1 END, runs.created_at DESC LIMIT 1
