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
  SELECT parts.batch_id, parts.part FROM batch_runs AS own JOIN batch_bodies AS parts ON parts.batch_id = own.batch_id
  WHERE own.run_id = :run_id AND NOT EXISTS (
    SELECT 1 FROM batch_runs AS other JOIN runs ON runs.id = other.run_id WHERE other.batch_id = own.batch_id)
  ORDER BY parts.batch_id, parts.part LIMIT :most)

-- name: delete_some_lines
DELETE FROM batch_lines
WHERE (batch_id, part) IN (
  SELECT parts.batch_id, parts.part FROM batch_runs AS own JOIN batch_lines AS parts ON parts.batch_id = own.batch_id
  WHERE own.run_id = :run_id AND NOT EXISTS (
    SELECT 1 FROM batch_runs AS other JOIN runs ON runs.id = other.run_id WHERE other.batch_id = own.batch_id)
  ORDER BY parts.batch_id, parts.part LIMIT :most)
