-- name: register_worker
INSERT INTO workers (host, pid, started, seen_at, queues) VALUES (:host, :pid, :started, :at, :queues)
ON CONFLICT (host, pid, started) DO UPDATE SET seen_at = EXCLUDED.seen_at, queues = EXCLUDED.queues

-- name: forget_workers
DELETE FROM workers WHERE seen_at < :before

-- name: dismiss
DELETE FROM workers WHERE host = :host AND pid = :pid AND started = :started

-- name: select_workers
SELECT host, pid, started, queues, seen_at FROM workers WHERE seen_at > :since ORDER BY host, pid
