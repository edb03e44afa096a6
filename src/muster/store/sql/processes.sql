-- name: note_process
INSERT INTO processes (token, driver_host, driver_pid, driver_started, pid, started, agent, noted_at)
VALUES (:token, :driver_host, :driver_pid, :driver_started, :pid, :started, :agent, :noted_at)
ON CONFLICT (token) DO NOTHING

-- name: forget_process
DELETE FROM processes WHERE token = :token

-- name: select_processes
SELECT * FROM processes WHERE driver_host = :host ORDER BY token
