-- The run that a run was continued as, once. It stays when that one completed and was deleted.
ALTER TABLE runs ADD COLUMN continued_by TEXT;
CREATE INDEX runs_by_origin ON runs (origin_id) WHERE origin_id IS NOT NULL;
CREATE INDEX runs_by_continuation ON runs (continued_by) WHERE continued_by IS NOT NULL;
-- Of runs that were continued several times the oldest completed one, else the newest one, is the end of the lineage:
-- runs on the way to it lead to the next one on that way, the others that did not complete straight to the end.
WITH RECURSIVE members (id, lineage, origin_id, place) AS (
  SELECT runs.id, COALESCE(runs.lineage, 'run:' || runs.id), runs.origin_id,
         ROW_NUMBER() OVER (PARTITION BY COALESCE(runs.lineage, 'run:' || runs.id)
                            ORDER BY CASE WHEN runs.state = 'completed' THEN 0 ELSE 1 END,
                                     CASE WHEN runs.state = 'completed' THEN runs.created_at ELSE -runs.created_at END,
                                     runs.id)
  FROM runs WHERE runs.parent_id IS NULL
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
WHERE runs.state <> 'completed' AND runs.id IN (SELECT links.id FROM links);
