-- name: lock_media
SELECT digest FROM media WHERE digest = :digest FOR UPDATE

-- name: insert_media
INSERT INTO media (digest, type, size, data) VALUES (:digest, :type, :size, :data)
ON CONFLICT (digest) DO UPDATE SET size = EXCLUDED.size

-- name: name_media
INSERT INTO run_media (run_id, digest) VALUES (:run_id, :digest) ON CONFLICT (run_id, digest) DO NOTHING

-- name: name_media_of_origin
INSERT INTO run_media (run_id, digest)
SELECT CAST(:run_id AS TEXT), digest FROM run_media WHERE run_id = :origin
ON CONFLICT (run_id, digest) DO NOTHING

-- name: select_media
SELECT type, data FROM media WHERE digest = :digest

-- name: select_media_type
SELECT type FROM media WHERE digest = :digest

-- name: select_media_of_run
SELECT run_media.digest, media.type FROM run_media JOIN media ON media.digest = run_media.digest
WHERE run_media.run_id = :run_id ORDER BY run_media.digest

-- name: delete_run_media
DELETE FROM run_media WHERE run_id = :run_id

-- name: select_unnamed_media
SELECT digest FROM media
WHERE NOT EXISTS (SELECT 1 FROM run_media WHERE run_media.digest = media.digest) ORDER BY digest LIMIT :most

-- name: delete_unnamed_media
DELETE FROM media
WHERE digest = :digest AND NOT EXISTS (SELECT 1 FROM run_media WHERE run_media.digest = media.digest)
