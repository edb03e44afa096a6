ALTER TABLE runs ADD COLUMN lineage TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN levels TEXT COLLATE "C";
CREATE INDEX runs_by_lineage ON runs (lineage) WHERE lineage IS NOT NULL;
