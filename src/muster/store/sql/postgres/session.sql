-- name: set_session
SELECT set_config('lock_timeout', :lock_timeout, false),
       set_config('idle_in_transaction_session_timeout', :idle_timeout, false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                                             ELSE current_setting('synchronous_commit') END, false),
       current_setting('transaction_read_only') AS read_only, pg_backend_pid() AS process

-- name: describe_server
SELECT current_setting('server_version') AS server, current_setting('server_version_num') AS number,
       current_setting('server_encoding') AS encoding, pg_database_size(current_database()) AS bytes

-- name: select_time
SELECT CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION) AS now

-- name: lock_name
SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))

-- name: select_missing_tables
WITH known (name) AS (VALUES (:name)) SELECT name FROM known WHERE to_regclass(name) IS NULL ORDER BY name

-- name: share_name
SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))

-- name: share_name_for_session
SELECT pg_advisory_lock_shared(hashtextextended(:name, 0))

-- name: last_transactions
SELECT CAST(pg_current_snapshot() AS TEXT) AS snapshot

-- name: begin_mark
INSERT INTO traits (name, value) VALUES (:name, '0 ' || CAST(CAST(extract(epoch FROM clock_timestamp()) AS BIGINT) AS TEXT))

-- name: mark_commit
-- Whoever gets the lock gives it back at once: no session waits for changes. Two that try at the same moment notify once
-- too often.
WITH marked AS (
  UPDATE traits SET value = CAST(:number AS TEXT) || ' ' || CAST(CAST(extract(epoch FROM clock_timestamp()) AS BIGINT) AS TEXT)
  WHERE name = :name
)
SELECT CASE WHEN pg_try_advisory_lock(hashtextextended(:watched, 0))
            THEN CAST(pg_advisory_unlock(hashtextextended(:watched, 0)) AS TEXT)
            ELSE CAST(pg_notify('muster', :sender) AS TEXT) END

-- name: notify_offers
-- A notification has at most 8,000 bytes: null stands for all workloads.
WITH offered AS (
  SELECT CAST(json_agg(DISTINCT runs.workload) AS TEXT) AS workloads FROM runs
  WHERE runs.id = ANY (string_to_array(:runs, ' '))
    AND runs.submitted = 1 AND COALESCE(runs.parent_id, '') = '' AND runs.driver_pid IS NULL AND runs.continued_by IS NULL
    AND CASE WHEN runs.state = 'waiting' THEN COALESCE(runs.ended_reason, '') <> 'awaiting_signal'
             ELSE runs.state IN ('queued', 'interrupted') END
)
SELECT pg_notify('muster_offers', CASE WHEN octet_length(workloads) < 7000 THEN workloads ELSE 'null' END)
FROM offered WHERE workloads IS NOT NULL

-- name: forget_marks
DELETE FROM traits
WHERE name >= :low AND name < :high
  AND CAST(split_part(value, ' ', 2) AS DOUBLE PRECISION)
      < CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION) - CAST(:seconds AS DOUBLE PRECISION)

-- name: find_schema
SELECT to_regclass('muster_schema') IS NOT NULL AS found

-- name: make_schema
CREATE TABLE muster_schema (version BIGINT NOT NULL)

-- name: select_version
SELECT MAX(version) AS version FROM muster_schema

-- name: put_version
INSERT INTO muster_schema (version) VALUES (:version)

-- name: select_columns
SELECT attname AS name FROM pg_attribute
WHERE attrelid = to_regclass(:name) AND attnum > 0 AND NOT attisdropped ORDER BY attnum

-- name: continue_positions
SELECT setval(pg_get_serial_sequence('journal', 'position'), (SELECT COALESCE(MAX(position), 0) + 1 FROM journal), false)

-- name: continue_audit
SELECT setval(pg_get_serial_sequence('audit', 'seq'), (SELECT COALESCE(MAX(seq), 0) + 1 FROM audit), false)
