ALTER TABLE runs ADD COLUMN lineage TEXT;
ALTER TABLE runs ADD COLUMN levels TEXT;
CREATE INDEX runs_by_lineage ON runs (lineage) WHERE lineage IS NOT NULL;
