-- name: insert_run
INSERT INTO runs (id, name, workload, spec, state, tags, seed, timeout, concurrency, submitted,
                  dispatch, parent_id, parent_key, origin_id, origin_reuse, origin_key, created_at,
                  lineage, levels, owner, client, request_key, request_digest, request_id, rules)
VALUES (:id, :name, :workload, :spec, 'queued', :tags, :seed, :timeout, :concurrency, :submitted,
        :dispatch, :parent_id, :parent_key, :origin_id, :origin_reuse, :origin_key, :created_at,
        :lineage, :levels, :owner, :client, :request_key, :request_digest, :request_id, :rules)
ON CONFLICT DO NOTHING

-- name: select_run
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE runs.id = :id

-- name: select_child
SELECT id FROM runs WHERE parent_id = :parent_id AND parent_key = :parent_key

-- name: select_children
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE runs.parent_id = :parent_id ORDER BY runs.created_at, runs.id

-- name: newest_child
SELECT id FROM runs
WHERE parent_id = :parent_id AND (parent_key = :key OR (parent_key >= :low AND parent_key < :high))
ORDER BY created_at DESC, id DESC LIMIT 1

-- name: select_runs
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
ORDER BY runs.created_at DESC, runs.id DESC LIMIT :limit

-- name: select_runs_in_state
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE runs.state = :state
ORDER BY runs.created_at DESC, runs.id DESC LIMIT :limit

-- name: select_runs_with_driver
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE runs.driver_pid IS NOT NULL

-- name: select_roots
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE COALESCE(runs.parent_id, '') = ''
ORDER BY runs.created_at DESC, runs.id DESC LIMIT :limit

-- name: page_runs
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE (CAST(:owner AS TEXT) IS NULL OR runs.owner = :owner)
  AND (:states = '' OR :states LIKE '%,' || runs.state || ',%')
  AND (:workloads = '' OR :workloads LIKE '%,' || runs.workload || ',%')
  AND (:roots = 0 OR runs.parent_id IS NULL)
  AND (CAST(:name AS TEXT) IS NULL OR runs.name = :name)
  AND (:search = '' OR runs.id LIKE :search ESCAPE '!' OR LOWER(COALESCE(runs.name, '')) LIKE :search ESCAPE '!'
       OR LOWER(runs.workload) LIKE :search ESCAPE '!' OR LOWER(COALESCE(runs.tags, '')) LIKE :search ESCAPE '!'
       OR :searched_workloads LIKE '%,' || runs.workload || ',%')
  AND (CAST(:agent AS TEXT) IS NULL OR (
       SELECT 1 FROM run_agents WHERE agent = :agent AND created_at = runs.created_at AND run_id = runs.id) IS NOT NULL)
  AND runs.created_at >= CAST(:since AS DOUBLE PRECISION)
  AND (runs.created_at, runs.id)
      < (COALESCE(CAST(:before_at AS DOUBLE PRECISION), 1e300), COALESCE(CAST(:before_id AS TEXT), ''))
ORDER BY runs.created_at DESC, runs.id DESC LIMIT :limit

-- name: page_runs_of_agent
-- What an agent was called in is walked through in the order of its own table; conditions are those of page_runs.
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM run_agents AS called JOIN runs ON runs.id = called.run_id
LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE called.agent = :agent AND called.created_at >= CAST(:since AS DOUBLE PRECISION)
  AND (called.created_at, called.run_id)
      < (COALESCE(CAST(:before_at AS DOUBLE PRECISION), 1e300), COALESCE(CAST(:before_id AS TEXT), ''))
  AND (:states = '' OR :states LIKE '%,' || runs.state || ',%')
  AND (:workloads = '' OR :workloads LIKE '%,' || runs.workload || ',%')
  AND (:roots = 0 OR runs.parent_id IS NULL)
  AND (:search = '' OR runs.id LIKE :search ESCAPE '!' OR LOWER(COALESCE(runs.name, '')) LIKE :search ESCAPE '!'
       OR LOWER(runs.workload) LIKE :search ESCAPE '!' OR LOWER(COALESCE(runs.tags, '')) LIKE :search ESCAPE '!'
       OR :searched_workloads LIKE '%,' || runs.workload || ',%')
ORDER BY called.created_at DESC, called.run_id DESC LIMIT :limit

-- name: note_agent
WITH RECURSIVE called (agent, run_id) AS (VALUES (:agent, :run_id)),
within (agent, id, created_at, parent_id) AS (
  SELECT called.agent, runs.id, runs.created_at, runs.parent_id FROM called JOIN runs ON runs.id = called.run_id
  UNION
  SELECT within.agent, runs.id, runs.created_at, runs.parent_id FROM within JOIN runs ON runs.id = within.parent_id
)
INSERT INTO run_agents (agent, created_at, run_id)
SELECT agent, created_at, id FROM within WHERE TRUE
ON CONFLICT DO NOTHING

-- name: delete_run_agents
DELETE FROM run_agents WHERE run_id = :run_id

-- name: page_named_runs
-- as page_runs, where runs.name = :name

-- name: page_runs_of_owner
-- as page_runs, where runs.owner = :owner

-- name: page_runs_in_state
-- as page_runs, where runs.state = :state

-- name: page_runs_of_workload
-- as page_runs, where COALESCE(runs.workload, '') = :workload AND runs.state = :state

-- name: newest_named
SELECT id FROM runs WHERE name = :name AND COALESCE(owner, '') = :owner AND COALESCE(parent_id, '') = ''
ORDER BY created_at DESC, id DESC LIMIT 1

-- name: select_requested
SELECT id FROM runs WHERE COALESCE(owner, '') = :owner AND request_key = :request_key

-- name: select_ended
SELECT id FROM runs WHERE COALESCE(parent_id, '') = '' AND ended_at IS NOT NULL AND ended_at < :before
ORDER BY ended_at LIMIT :limit

-- name: end_of_lineage
WITH RECURSIVE way (id, next, steps) AS (
  SELECT id, continued_by, 0 FROM runs WHERE id = :id
  UNION
  SELECT runs.id, runs.continued_by, way.steps + 1 FROM way JOIN runs ON runs.id = way.next WHERE way.steps < 10000
)
SELECT id FROM way ORDER BY steps DESC LIMIT 1

-- name: continue_run
UPDATE runs SET continued_by = :continued_by WHERE id = :id AND continued_by IS NULL

-- name: relink_run
UPDATE runs SET continued_by = :next WHERE continued_by = :id

-- name: select_deleted_end
SELECT continued_by FROM runs
WHERE (lineage = :lineage OR id = :first) AND continued_by IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM runs AS later WHERE later.id = runs.continued_by)
LIMIT 1

-- name: link_lineage
WITH RECURSIVE members (id, lineage, origin_id, place) AS (
  SELECT runs.id, COALESCE(runs.lineage, 'run:' || runs.id), runs.origin_id,
         ROW_NUMBER() OVER (PARTITION BY COALESCE(runs.lineage, 'run:' || runs.id)
                            ORDER BY CASE WHEN runs.state = 'completed' THEN 0 ELSE 1 END,
                                     CASE WHEN runs.driver_pid IS NOT NULL THEN 0 ELSE 1 END,
                                     CASE WHEN runs.continued_by IS NULL THEN 0 ELSE 1 END,
                                     CASE WHEN runs.state = 'completed' THEN runs.created_at ELSE -runs.created_at END,
                                     runs.id)
  FROM runs WHERE runs.parent_id IS NULL AND (runs.lineage = :lineage OR runs.id = :first)
), way (id, next, lineage) AS (
  SELECT origin.id, ending.id, ending.lineage FROM members AS ending
  JOIN members AS origin ON origin.id = ending.origin_id AND origin.lineage = ending.lineage WHERE ending.place = 1
  UNION
  SELECT origin.id, later.id, later.lineage FROM way
  JOIN members AS later ON later.id = way.id
  JOIN members AS origin ON origin.id = later.origin_id AND origin.lineage = later.lineage
), links (id, next) AS (
  SELECT members.id, COALESCE(way.next, ending.id) FROM members
  JOIN members AS ending ON ending.lineage = members.lineage AND ending.place = 1 AND ending.id <> members.id
  LEFT JOIN way ON way.id = members.id
)
UPDATE runs SET continued_by = (SELECT links.next FROM links WHERE links.id = runs.id)
WHERE runs.state <> 'completed' AND runs.driver_pid IS NULL AND runs.id IN (SELECT links.id FROM links)

-- name: rest_continued
UPDATE runs SET submitted = 0, state = CASE WHEN state = 'queued' THEN 'interrupted' ELSE state END,
                ended_reason = CASE WHEN state = 'queued' THEN 'interrupted' ELSE ended_reason END
WHERE (lineage = :lineage OR id = :first) AND continued_by IS NOT NULL AND driver_pid IS NULL
  AND state IN ('queued', 'interrupted', 'waiting')

-- name: select_submitted
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE runs.submitted = 1 AND COALESCE(runs.parent_id, '') = '' AND runs.driver_pid IS NULL AND runs.continued_by IS NULL
  AND CASE WHEN runs.state = 'waiting' THEN COALESCE(runs.ended_reason, '') <> 'awaiting_signal'
           ELSE runs.state IN ('queued', 'interrupted') END
  AND runs.workload > ''
  AND (:workloads = '' OR :workloads LIKE '%,' || runs.workload || ',%')
  AND (CAST(:after_id AS TEXT) IS NULL OR (runs.created_at, runs.id) > (:after_at, :after_id))
ORDER BY +runs.created_at, runs.id LIMIT :limit

-- name: match_runs
SELECT runs.*, own.reserved, own.billed, own.imputed, own.uncertain, total.cap, total.reserved AS total_reserved,
       total.billed AS total_billed, total.imputed AS total_imputed, total.uncertain AS total_uncertain
FROM runs LEFT JOIN budgets AS own ON own.id = 'run:' || runs.id
LEFT JOIN budgets AS total ON total.id = COALESCE(runs.lineage, 'run:' || runs.id)
WHERE (runs.id = :reference OR runs.name = :reference OR (runs.id >= :reference AND runs.id < :after))
  AND (CAST(:owner AS TEXT) IS NULL OR COALESCE(runs.owner, '') = :owner)
ORDER BY runs.created_at DESC, runs.id DESC LIMIT 20

-- name: select_lease
SELECT epoch, state, cancel_requested FROM runs WHERE id = :id FOR UPDATE

-- name: select_epochs
SELECT id, epoch, state FROM runs WHERE id IN (VALUES (:id)) ORDER BY id FOR UPDATE

-- name: lock_runs
SELECT id FROM runs WHERE id IN (VALUES (:id)) ORDER BY id FOR UPDATE

-- name: claim_run
UPDATE runs
SET epoch = epoch + 1, state = 'running', driver_host = :host, driver_pid = :pid, driver_started = :started,
    lease_until = :until, started_at = COALESCE(started_at, :at), ended_reason = NULL, error = NULL
WHERE id = :id AND epoch = :epoch AND state IN ('queued', 'running', 'waiting', 'interrupted')
  AND (CAST(:seen_until AS DOUBLE PRECISION) IS NULL OR lease_until = :seen_until)

-- name: beat_runs
WITH beat (run_id, epoch, until, active, state) AS (
  VALUES (:id, CAST(:epoch AS BIGINT), CAST(:until AS DOUBLE PRECISION), CAST(:active AS DOUBLE PRECISION), :state)
)
UPDATE runs SET lease_until = beat.until, active = beat.active, state = beat.state
FROM beat WHERE runs.id = beat.run_id AND runs.epoch = beat.epoch AND runs.driver_pid IS NOT NULL
RETURNING id, runs.epoch, cancel_requested

-- name: release_run
UPDATE runs
SET state = :state, ended_reason = :reason, error = :error, result = :result, active = :active,
    ended_at = :ended_at, driver_host = NULL, driver_pid = NULL, driver_started = NULL, lease_until = 0
WHERE id = :id AND epoch = :epoch

-- name: expire_run
UPDATE runs
SET epoch = epoch + 1, ended_reason = 'driver_died', error = :error,
    state = CASE WHEN cancel_requested = 1 THEN 'canceled' ELSE 'interrupted' END,
    ended_at = CASE WHEN cancel_requested = 1 THEN CAST(:at AS DOUBLE PRECISION) END,
    driver_host = NULL, driver_pid = NULL, driver_started = NULL, lease_until = 0
WHERE id = :id AND epoch = :epoch AND driver_pid IS NOT NULL AND state IN ('running', 'waiting')
  AND (CAST(:seen_until AS DOUBLE PRECISION) IS NULL OR lease_until = :seen_until)

-- name: ask_cancel
UPDATE runs SET cancel_requested = 1 WHERE id = :id AND driver_pid IS NOT NULL AND state IN ('running', 'waiting')

-- name: cancel_idle_run
UPDATE runs SET state = 'canceled', ended_reason = 'canceled', error = NULL, cancel_requested = 1, ended_at = :at,
    epoch = epoch + 1
WHERE id = :id AND driver_pid IS NULL AND state IN ('queued', 'interrupted', 'waiting')

-- name: requeue_run
UPDATE runs SET state = 'queued', submitted = 1, ended_reason = NULL
WHERE id = :id AND driver_pid IS NULL AND state IN ('queued', 'interrupted', 'waiting')

-- name: amend_run
UPDATE runs SET spec = :spec WHERE id = :id AND state = 'queued' AND started_at IS NULL

-- name: count_runs
WITH change (run_id, events, total, done, failed, uncertain, reused) AS (
  VALUES (:run_id, CAST(:events AS BIGINT), CAST(:total AS BIGINT), CAST(:done AS BIGINT), CAST(:failed AS BIGINT),
          CAST(:uncertain AS BIGINT), CAST(:reused AS BIGINT))
)
UPDATE runs
SET last_seq = last_seq + change.events, calls_total = calls_total + change.total, calls_done = calls_done + change.done,
    calls_failed = calls_failed + change.failed, calls_uncertain = calls_uncertain + change.uncertain,
    calls_reused = calls_reused + change.reused
FROM change WHERE runs.id = change.run_id
RETURNING id, last_seq

-- name: restore_run
INSERT INTO runs (id, name, workload, spec, state, ended_reason, error, result, tags, seed, timeout, concurrency, active,
                  dispatch, parent_id, parent_key, origin_id, origin_reuse, origin_key, created_at, started_at, ended_at,
                  calls_total, calls_done, calls_failed, calls_uncertain, calls_reused, lineage, levels, owner, rules)
VALUES (:id, :name, :workload, :spec, :state, :ended_reason, :error, :result, :tags, :seed, :timeout, :concurrency, :active,
        :dispatch, :parent_id, :parent_key, :origin_id, :origin_reuse, :origin_key, :created_at, :started_at, :ended_at,
        :calls_total, :calls_done, :calls_failed, :calls_uncertain, :calls_reused, :lineage, :levels, :owner, :rules)

-- name: delete_run
DELETE FROM runs WHERE id = :id

-- name: count_heirs
SELECT COUNT(*) AS heirs FROM runs
WHERE (origin_id = :id AND state <> 'completed')
   OR (parent_id = :id AND state IN ('queued', 'running', 'waiting', 'interrupted'))

-- name: detach_children
UPDATE runs SET parent_id = NULL, parent_key = NULL WHERE parent_id = :id

-- name: select_driven
SELECT id, driver_pid, driver_host FROM runs WHERE state IN ('running', 'waiting') AND driver_pid IS NOT NULL AND lease_until > :now
ORDER BY id
