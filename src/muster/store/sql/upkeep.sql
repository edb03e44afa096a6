-- name: select_traits
SELECT name, value FROM traits WHERE name >= :low AND name < :high ORDER BY name

-- name: set_trait
INSERT INTO traits (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value

-- name: touch
UPDATE traits SET value = value WHERE name = ''

-- name: replace_trait
UPDATE traits SET value = :value WHERE name = :name AND value = :was

-- name: delete_trait
DELETE FROM traits WHERE name = :name AND value = :value

-- name: delete_some_requests
DELETE FROM requests
WHERE position IN (SELECT position FROM journal WHERE run_id = :run_id ORDER BY position LIMIT :most)

-- name: delete_some_outcomes
DELETE FROM outcomes
WHERE position IN (SELECT position FROM journal WHERE run_id = :run_id ORDER BY position LIMIT :most)

-- name: delete_some_journal
DELETE FROM journal
WHERE position IN (SELECT position FROM journal WHERE run_id = :run_id ORDER BY position LIMIT :most)

-- name: delete_some_attempts
DELETE FROM attempts
WHERE run_id = :run_id
  AND (key, n) IN (SELECT key, n FROM attempts WHERE run_id = :run_id ORDER BY key, n LIMIT :most)

-- name: delete_some_events
DELETE FROM events
WHERE run_id = :run_id AND seq IN (SELECT seq FROM events WHERE run_id = :run_id ORDER BY seq LIMIT :most)

-- name: delete_some_bodies
DELETE FROM batch_bodies
WHERE (batch_id, part) IN (
  SELECT batch_id, part FROM batch_bodies WHERE batch_id NOT IN (SELECT batch_id FROM batch_runs)
  ORDER BY batch_id, part LIMIT :most)

-- name: delete_some_lines
DELETE FROM batch_lines
WHERE (batch_id, part) IN (
  SELECT batch_id, part FROM batch_lines WHERE batch_id NOT IN (SELECT batch_id FROM batch_runs)
  ORDER BY batch_id, part LIMIT :most)
