-- name: insert_event
INSERT INTO events (run_id, seq, kind, at, data) VALUES (:run_id, :seq, :kind, :at, :data)

-- name: select_events
SELECT run_id, seq, kind, at, data FROM events WHERE run_id = :run_id AND seq > :after ORDER BY seq LIMIT :limit

-- name: select_first_event
SELECT run_id, seq, kind, at, data FROM events WHERE run_id = :run_id AND kind = :kind ORDER BY seq LIMIT 1

-- name: put_partial
INSERT INTO partials (run_id, key, text, at)
SELECT run_id, key, CAST(:text AS TEXT), CAST(:at AS DOUBLE PRECISION) FROM journal
WHERE run_id = :run_id AND key = :key AND state = 'open'
  AND EXISTS (SELECT 1 FROM runs WHERE id = :run_id AND epoch = :epoch)
ON CONFLICT (run_id, key) DO UPDATE SET text = EXCLUDED.text, at = EXCLUDED.at

-- name: select_partials
SELECT key, text FROM partials WHERE run_id = :run_id ORDER BY at

-- name: drop_partial
DELETE FROM partials WHERE (run_id, key) IN (VALUES (:run_id, :key))

-- name: delete_partials
DELETE FROM partials WHERE run_id = :run_id
