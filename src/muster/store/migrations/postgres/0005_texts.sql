CREATE TABLE requests (
  position BIGINT PRIMARY KEY,
  request TEXT COLLATE "C" NOT NULL
);
CREATE TABLE outcomes (
  position BIGINT PRIMARY KEY,
  outcome TEXT COLLATE "C" NOT NULL
);
INSERT INTO requests (position, request) SELECT position, request FROM journal WHERE request IS NOT NULL ORDER BY position;
INSERT INTO outcomes (position, outcome) SELECT position, outcome FROM journal WHERE outcome IS NOT NULL ORDER BY position;
ALTER TABLE journal DROP COLUMN request;
ALTER TABLE journal DROP COLUMN outcome;
CREATE INDEX journal_by_run ON journal (run_id, position);
