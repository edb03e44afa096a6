-- name: put_baseline
INSERT INTO baselines (name, run_id, set_at) VALUES (:name, :run_id, :set_at)
ON CONFLICT (name) DO UPDATE SET run_id = excluded.run_id, set_at = excluded.set_at

-- name: select_baseline
SELECT * FROM baselines WHERE name = :name

-- name: select_baselines
SELECT * FROM baselines ORDER BY name

-- name: select_baselines_of_run
SELECT name FROM baselines WHERE run_id = :run_id ORDER BY name

-- name: delete_baseline
DELETE FROM baselines WHERE name = :name
