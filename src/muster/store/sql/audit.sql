-- name: select_audit
SELECT * FROM audit WHERE seq < COALESCE(CAST(:before AS BIGINT), 9223372036854775807) ORDER BY seq DESC LIMIT :limit

-- name: begin_audit
INSERT INTO audit (at, user_name, client, action, subject, request_id, outcome)
VALUES (:at, :user_name, :client, :action, :subject, :request_id, 'unknown')
RETURNING seq

-- name: end_audit
UPDATE audit SET subject = :subject, outcome = :outcome WHERE seq = :seq

-- name: withdraw_audit
DELETE FROM audit WHERE seq = :seq
