-- name: insert_signal
INSERT INTO signals (address, channel, seq, client_id, payload, sender, sent_at)
SELECT :address, :channel, COALESCE(MAX(seq), 0) + 1, :client_id, :payload, :sender, CAST(:sent_at AS DOUBLE PRECISION)
FROM signals WHERE address = :address AND channel = :channel
RETURNING *

-- name: select_signal_of_client
SELECT * FROM signals WHERE address = :address AND client_id = :client_id

-- name: select_signals
SELECT * FROM signals WHERE address = :address AND channel = :channel AND seq > :after ORDER BY seq LIMIT :limit

-- name: select_untaken_signals
SELECT * FROM signals WHERE address = :address AND channel = :channel AND taken_by IS NULL ORDER BY seq LIMIT :limit

-- name: take_signal
UPDATE signals SET taken_by = :taken_by WHERE address = :address AND channel = :channel AND seq = :seq

-- name: delete_signals
DELETE FROM signals WHERE address = :address
  AND NOT EXISTS (SELECT 1 FROM runs WHERE lineage = :address)

-- name: insert_await
INSERT INTO awaits (run_id, root_id, address, channel, until)
VALUES (:run_id, :root_id, :address, :channel, :until)
ON CONFLICT (run_id, address, channel) DO NOTHING

-- name: delete_awaits
DELETE FROM awaits WHERE run_id = :run_id

-- name: select_awaiting_roots
SELECT DISTINCT root_id FROM awaits WHERE address = :address AND channel = :channel ORDER BY root_id

-- name: select_due_roots
SELECT DISTINCT root_id FROM awaits WHERE until IS NOT NULL AND until <= :at ORDER BY root_id

-- name: select_answered_await
SELECT awaits.run_id FROM awaits
JOIN signals ON signals.address = awaits.address AND signals.channel = awaits.channel AND signals.taken_by IS NULL
WHERE awaits.root_id = :root_id LIMIT 1

-- name: wake_run
UPDATE runs SET state = 'queued', submitted = 1, ended_reason = NULL
WHERE id = :id AND driver_pid IS NULL AND continued_by IS NULL AND state = 'waiting' AND ended_reason = 'awaiting_signal'
