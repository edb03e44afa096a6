-- name: add_audit
INSERT INTO audit (at, user_name, client, action, subject, request_id)
VALUES (:at, :user_name, :client, :action, :subject, :request_id)

-- name: select_audit
SELECT * FROM audit WHERE CAST(:before AS BIGINT) IS NULL OR seq < :before ORDER BY seq DESC LIMIT :limit
