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

-- name: last_transaction
SELECT CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS number

-- name: begin_mark
INSERT INTO traits (name, value) VALUES (:name, '0 ' || CAST(CAST(extract(epoch FROM clock_timestamp()) AS BIGINT) AS TEXT))

-- name: mark_commit
WITH marked AS (
  UPDATE traits SET value = CAST(:number AS TEXT) || ' ' || CAST(CAST(extract(epoch FROM clock_timestamp()) AS BIGINT) AS TEXT)
  WHERE name = :name
)
SELECT pg_notify('muster', :sender)

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
