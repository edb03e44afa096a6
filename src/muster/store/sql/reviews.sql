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
