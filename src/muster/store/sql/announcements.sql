-- name: announce_run
INSERT INTO announcements (run_id, seq, tries, due_at)
SELECT runs.id, 1, 0, 0 FROM runs
WHERE runs.id = :id AND runs.parent_id IS NULL AND EXISTS (SELECT 1 FROM traits WHERE traits.name = 'hooks')
ON CONFLICT (run_id) DO UPDATE SET seq = announcements.seq + 1, tries = 0, due_at = 0

-- name: select_announcements
SELECT run_id, seq, tries FROM announcements WHERE due_at <= :at ORDER BY due_at, run_id LIMIT :limit

-- name: postpone_announcement
UPDATE announcements SET tries = tries + 1, due_at = :until WHERE run_id = :run_id AND seq = :seq AND due_at <= :at

-- name: delete_announcement
DELETE FROM announcements WHERE run_id = :run_id AND seq = :seq

-- name: delete_announcements
DELETE FROM announcements
