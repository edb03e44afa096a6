-- name: put_trait
INSERT INTO traits (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING

-- name: select_trait
SELECT value FROM traits WHERE name = :name

-- name: insert_batch
INSERT INTO batches (id, desk, account, nonce, state, requests, bytes, tariffs, created_at, reserved, note)
VALUES (:id, :desk, :account, :nonce, 'planned', :requests, :bytes, :tariffs, :at, :reserved, :note)

-- name: restore_batch
INSERT INTO batches (id, desk, account, nonce, state, requests, bytes, tariffs, provider_id, created_at, sent_at,
                     submitted_at, ended_at, reserved, note)
VALUES (:id, :desk, :account, :nonce, :state, :requests, :bytes, :tariffs, :provider_id, :created_at, :sent_at,
        :submitted_at, :ended_at, 0, :note)
ON CONFLICT (id) DO NOTHING

-- name: restore_attempt
INSERT INTO attempts (run_id, key, n, epoch, state, reserved, lane, levels, started_at, agent, batch_id, place, size, max_tokens)
VALUES (:run_id, :key, :n, :epoch, 'parked', :reserved, 'billed', :levels, :at, :agent, :batch_id, :place, :size, :max_tokens)
ON CONFLICT (run_id, key, n) DO NOTHING

-- name: hold_more
UPDATE batches SET reserved = reserved + :reserved WHERE id = :id

-- name: reserve_again
UPDATE budgets SET reserved = reserved + :amount WHERE id = :id

-- name: count_batch_run
INSERT INTO batch_runs (batch_id, run_id, members) VALUES (:batch_id, :run_id, :members)
ON CONFLICT (batch_id, run_id) DO NOTHING

-- name: insert_batch_run
INSERT INTO batch_runs (batch_id, run_id, members) VALUES (:batch_id, :run_id, :members)

-- name: insert_batch_body
INSERT INTO batch_bodies (batch_id, part, data) VALUES (:batch_id, :part, :data)

-- name: insert_batch_lines
INSERT INTO batch_lines (batch_id, part, data)
SELECT CAST(:batch_id AS TEXT), COALESCE(MAX(part) + 1, 0), :data FROM batch_lines WHERE batch_id = :batch_id

-- name: park_attempt
INSERT INTO attempts (run_id, key, n, epoch, state, reserved, lane, levels, started_at, agent, batch_id, place, size, max_tokens)
VALUES (:run_id, :key, :n, :epoch, 'parked', :reserved, 'billed', :levels, :at, :agent, :batch_id, :place, :size, :max_tokens)

-- name: select_batch
SELECT * FROM batches WHERE id = :id

-- name: select_batches
SELECT * FROM batches
WHERE (created_at, id) < (COALESCE(CAST(:before_at AS DOUBLE PRECISION), 1e300), COALESCE(CAST(:before_id AS TEXT), ''))
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: select_batches_in_state
SELECT * FROM batches
WHERE state = :state
  AND (created_at, id) < (COALESCE(CAST(:before_at AS DOUBLE PRECISION), 1e300), COALESCE(CAST(:before_id AS TEXT), ''))
ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: select_batches_since
SELECT * FROM batches WHERE created_at >= :since ORDER BY created_at, id

-- name: match_batches
SELECT * FROM batches
WHERE provider_id = :reference OR (id >= :reference AND id < :after)
ORDER BY created_at DESC, id DESC LIMIT 20

-- name: select_batches_of_run
SELECT batches.* FROM batches JOIN batch_runs ON batch_runs.batch_id = batches.id
WHERE batch_runs.run_id = :run_id ORDER BY batches.created_at, batches.id

-- name: delete_batch_runs
DELETE FROM batch_runs WHERE run_id = :run_id

-- name: select_runs_of_batch
SELECT batch_runs.run_id, batch_runs.members FROM batch_runs JOIN runs ON runs.id = batch_runs.run_id
WHERE batch_runs.batch_id = :batch_id ORDER BY batch_runs.run_id

-- name: select_known_batches
SELECT provider_id, adopted FROM batches WHERE account = :account AND provider_id IS NOT NULL

-- name: select_stalled_batches
SELECT * FROM batches WHERE stalled = 1 ORDER BY created_at, id LIMIT :limit

-- name: claim_planned_batch
UPDATE batches
SET state = 'sent', epoch = epoch + 1, sent_at = :at, note = 'it is being sent', claimed_at = :at, lease_until = :until,
    driver_host = :host, driver_pid = :pid, driver_started = :started, by_hand = :by_hand,
    grace_until = NULL, stalled = 0, waits_for = NULL
WHERE id = :id AND epoch = :epoch AND state = 'planned' AND cancel_requested = 0
  AND NOT EXISTS (
    SELECT 1 FROM batches AS other
    WHERE other.account = :account AND other.state = 'sent' AND other.requests = batches.requests
      AND (other.grace_until IS NULL OR other.grace_until > :at) AND CAST(:alone AS BIGINT) = 1
  )

-- name: claim_sent_batch
UPDATE batches
SET epoch = epoch + 1, claimed_at = :at, lease_until = :until, by_hand = :by_hand,
    driver_host = :host, driver_pid = :pid, driver_started = :started
WHERE id = :id AND epoch = :epoch AND state = 'sent' AND lease_until = :seen

-- name: renew_batch
UPDATE batches SET lease_until = :until WHERE id = :id AND epoch = :epoch AND state = 'sent'

-- name: release_batch
UPDATE batches
SET lease_until = 0, by_hand = 0, claimed_at = NULL, driver_host = NULL, driver_pid = NULL, driver_started = NULL
WHERE id = :id AND epoch = :epoch AND state = 'sent'

-- name: take_batch_turn
UPDATE batches
SET claimed_at = :at, lease_until = :until, driver_host = :host, driver_pid = :pid, driver_started = :started,
    by_hand = :by_hand
WHERE id = :id AND state = :state AND state IN ('running', 'ended') AND lease_until = :seen

-- name: keep_batch_turn
UPDATE batches SET lease_until = :until
WHERE id = :id AND state IN ('running', 'ended')
  AND driver_host = :host AND driver_pid = :pid AND driver_started = :started

-- name: end_batch_turn
UPDATE batches
SET lease_until = 0, by_hand = 0, claimed_at = NULL, driver_host = NULL, driver_pid = NULL, driver_started = NULL
WHERE id = :id AND state <> 'sent' AND driver_host = :host AND driver_pid = :pid AND driver_started = :started

-- name: update_batch
UPDATE batches
SET state = :state, provider_id = :provider_id, file = :file, sent_at = :sent_at, submitted_at = :submitted_at,
    ended_at = :ended_at, collected_at = :collected_at, adopted = :adopted, rejected = :rejected, done = :done,
    word = :word, polled_at = :polled_at, note = :note, error = :error,
    grace_until = :grace_until, stalled = :stalled, waits_for = :waits_for, uploads = :uploads,
    lease_until = CASE
      WHEN state = CAST(:state AS TEXT) OR (state = 'running' AND CAST(:state AS TEXT) = 'ended') THEN lease_until
      ELSE 0
    END
WHERE id = :id AND state = :was AND epoch = :epoch
  AND NOT EXISTS (
    SELECT 1 FROM batches AS other
    WHERE other.account = batches.account AND other.provider_id = CAST(:provider_id AS TEXT) AND other.id <> batches.id
  )

-- name: ask_batch_cancel
UPDATE batches SET cancel_requested = 1 WHERE id = :id AND state NOT IN ('collected', 'refused', 'abandoned')

-- name: lock_batches_of_runs
SELECT id FROM batches WHERE id IN (SELECT batch_id FROM batch_runs WHERE run_id IN (VALUES (:run_id)))
ORDER BY id FOR UPDATE

-- name: cancel_batches_of_run
UPDATE batches SET cancel_requested = 1
WHERE state NOT IN ('collected', 'refused', 'abandoned')
  AND id IN (SELECT batch_id FROM batch_runs WHERE run_id = :run_id)
  AND NOT EXISTS (
    SELECT 1 FROM batch_runs JOIN runs ON runs.id = batch_runs.run_id
    WHERE batch_runs.batch_id = batches.id AND runs.state IN ('queued', 'running', 'waiting', 'interrupted')
  )

-- name: select_orphans
SELECT id FROM batches
WHERE state IN ('planned', 'sent', 'running', 'ended') AND cancel_requested = 1
  AND NOT EXISTS (
    SELECT 1 FROM batch_runs JOIN runs ON runs.id = batch_runs.run_id
    WHERE batch_runs.batch_id = batches.id AND runs.state IN ('queued', 'running', 'waiting', 'interrupted')
  )
ORDER BY created_at, id

-- name: count_batch
UPDATE batches
SET succeeded = succeeded + :succeeded, errored = errored + :errored, canceled = canceled + :canceled,
    expired = expired + :expired, uncertain = uncertain + :uncertain,
    cost = CASE WHEN cost + CAST(:cost AS BIGINT) > 1152921504606846976 THEN 1152921504606846976 ELSE cost + CAST(:cost AS BIGINT) END,
    live_cost = CASE WHEN live_cost + CAST(:live_cost AS BIGINT) > 1152921504606846976 THEN 1152921504606846976 ELSE live_cost + CAST(:live_cost AS BIGINT) END,
    input_tokens = CASE WHEN input_tokens + CAST(:input_tokens AS BIGINT) > 1152921504606846976 THEN 1152921504606846976 ELSE input_tokens + CAST(:input_tokens AS BIGINT) END,
    output_tokens = CASE WHEN output_tokens + CAST(:output_tokens AS BIGINT) > 1152921504606846976 THEN 1152921504606846976 ELSE output_tokens + CAST(:output_tokens AS BIGINT) END
WHERE id = :id

-- name: select_batch_bodies
SELECT data FROM batch_bodies WHERE batch_id = :batch_id AND part = :part

-- name: select_batch_lines
SELECT data FROM batch_lines WHERE batch_id = :batch_id AND part = :part

-- name: select_members
SELECT a.run_id, a.key, a.n, a.epoch, a.place, a.state, a.agent, a.reserved, a.levels, a.size, a.max_tokens, journal.position
FROM attempts AS a LEFT JOIN journal ON journal.run_id = a.run_id AND journal.key = a.key
WHERE a.batch_id = :batch_id AND a.place >= :first AND a.place < :after ORDER BY a.place

-- name: select_parked
SELECT a.run_id, a.key, a.n, a.epoch, a.place, a.state, a.agent, a.reserved, a.levels, a.size, a.max_tokens, journal.position
FROM attempts AS a LEFT JOIN journal ON journal.run_id = a.run_id AND journal.key = a.key
WHERE a.batch_id = :batch_id AND a.place > :after AND a.state = 'parked' ORDER BY a.place LIMIT :limit

-- name: sum_max_tokens
SELECT COALESCE(SUM(max_tokens), 0) AS tokens FROM attempts WHERE batch_id = :batch_id

-- name: count_abandoned
SELECT COUNT(*) AS tries FROM attempts JOIN batches ON batches.id = attempts.batch_id
WHERE attempts.run_id = :run_id AND attempts.key = :key AND attempts.n > :after AND batches.state = 'abandoned'

-- name: select_parked_call
SELECT batch_id, place FROM attempts
WHERE run_id = :run_id AND key = :key AND state = 'parked' AND batch_id IS NOT NULL
ORDER BY n DESC LIMIT 1

-- name: count_parked_of_run
SELECT COUNT(*) AS parked FROM attempts WHERE run_id = :run_id AND state = 'parked'

-- name: settle_parked
WITH settled (run_id, key, n, state, cost, lane, at, error, live_cost) AS (
  VALUES (:run_id, :key, CAST(:n AS BIGINT), :state, CAST(:cost AS BIGINT), :lane,
          CAST(:at AS DOUBLE PRECISION), :error, CAST(:live_cost AS BIGINT))
)
UPDATE attempts
SET state = settled.state, cost = settled.cost, lane = settled.lane, ended_at = settled.at, error = settled.error,
    live_cost = settled.live_cost
FROM settled
WHERE attempts.run_id = settled.run_id AND attempts.key = settled.key AND attempts.n = settled.n
  AND attempts.state = 'parked'

-- name: sum_batches_of_keys
SELECT attempts.batch_id, MIN(batches.provider_id) AS provider_id, COUNT(*) AS calls,
       COALESCE(SUM(CASE WHEN attempts.state = 'succeeded' AND attempts.lane <> 'uncertain'
                         THEN CAST(attempts.cost AS DOUBLE PRECISION) ELSE 0 END), 0) AS cost,
       COALESCE(SUM(CAST(attempts.live_cost AS DOUBLE PRECISION)), 0) AS live_cost,
       SUM(CASE WHEN attempts.state = 'parked' THEN 1 ELSE 0 END) AS parked
FROM attempts LEFT JOIN batches ON batches.id = attempts.batch_id
WHERE attempts.run_id = :run_id AND attempts.batch_id IS NOT NULL
  AND SUBSTR(attempts.key, 1, CAST(:length AS INTEGER)) = :prefix
GROUP BY attempts.batch_id ORDER BY attempts.batch_id

-- name: sum_savings_of_run
SELECT COUNT(DISTINCT batch_id) AS batches,
       COALESCE(SUM(CASE WHEN batch_id IS NOT NULL AND state = 'succeeded' AND lane <> 'uncertain'
                         THEN CAST(cost AS DOUBLE PRECISION) ELSE 0 END), 0) AS cost,
       COALESCE(SUM(CASE WHEN batch_id IS NOT NULL THEN CAST(live_cost AS DOUBLE PRECISION) ELSE 0 END), 0) AS live_cost,
       COALESCE(SUM(CASE WHEN state = 'parked' THEN 1 ELSE 0 END), 0) AS parked,
       COALESCE(SUM(CASE WHEN batch_id IS NULL THEN 1 ELSE 0 END), 0) AS flex_calls,
       COALESCE(SUM(CASE WHEN batch_id IS NULL THEN CAST(cost AS DOUBLE PRECISION) ELSE 0 END), 0) AS flex_cost,
       COALESCE(SUM(CASE WHEN batch_id IS NULL THEN CAST(live_cost AS DOUBLE PRECISION) ELSE 0 END), 0) AS flex_live_cost
FROM attempts WHERE run_id = :run_id AND (batch_id IS NOT NULL OR live_cost > 0)
