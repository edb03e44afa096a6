-- name: select_audit
SELECT * FROM audit WHERE CAST(:before AS BIGINT) IS NULL OR seq < :before ORDER BY seq DESC LIMIT :limit

-- name: begin_audit
INSERT INTO audit (at, user_name, client, action, subject, request_id, outcome)
VALUES (:at, :user_name, :client, :action, :subject, :request_id, 'unknown')
RETURNING seq

-- name: end_audit
UPDATE audit SET subject = :subject, outcome = :outcome WHERE seq = :seq

-- name: withdraw_audit
DELETE FROM audit WHERE seq = :seq
