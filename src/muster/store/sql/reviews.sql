-- name: put_review
INSERT INTO reviews (run_id, case_id, subject, epoch, reviewer, opinion, note, reviewed_at)
VALUES (:run_id, :case_id, :subject, :epoch, :reviewer, :opinion, :note, :reviewed_at)
ON CONFLICT (run_id, case_id, subject, epoch, reviewer) DO UPDATE
SET opinion = excluded.opinion, note = excluded.note, reviewed_at = excluded.reviewed_at
WHERE reviews.reviewed_at <= excluded.reviewed_at

-- name: select_reviews
SELECT * FROM reviews WHERE run_id = :run_id ORDER BY case_id, subject, epoch, reviewer

-- name: delete_reviews
DELETE FROM reviews WHERE run_id = :run_id

-- name: put_figures
INSERT INTO figures (run_id, made_from, data)
SELECT runs.id, CAST(:made_from AS TEXT), CAST(:data AS TEXT) FROM runs WHERE runs.id = :run_id
ON CONFLICT (run_id) DO UPDATE SET made_from = excluded.made_from, data = excluded.data

-- name: select_run_version
SELECT state, last_seq, (SELECT MAX(position) FROM journal WHERE run_id = :run_id) AS position
FROM runs WHERE id = :run_id

-- name: select_figures
SELECT data FROM figures WHERE run_id = :run_id AND made_from = :made_from

-- name: delete_figures
DELETE FROM figures WHERE run_id = :run_id
