CREATE TABLE requests (
  position INTEGER PRIMARY KEY,
  request TEXT NOT NULL
);
CREATE TABLE outcomes (
  position INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL
);
INSERT INTO requests (position, request) SELECT position, request FROM journal WHERE request IS NOT NULL ORDER BY position;
INSERT INTO outcomes (position, outcome) SELECT position, outcome FROM journal WHERE outcome IS NOT NULL ORDER BY position;

ALTER TABLE journal RENAME TO journal_with_texts;
DROP INDEX journal_by_key;
CREATE TABLE journal (
  position INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL,
  key TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  digest TEXT NOT NULL,
  agent TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  error TEXT,
  reused_from TEXT,
  opened_at REAL NOT NULL,
  settled_at REAL
);
INSERT INTO journal (position, run_id, key, kind, state, digest, agent, attempts, error, reused_from, opened_at, settled_at)
SELECT position, run_id, key, kind, state, digest, agent, attempts, error, reused_from, opened_at, settled_at
FROM journal_with_texts ORDER BY position;
DROP TABLE journal_with_texts;
CREATE UNIQUE INDEX journal_by_key ON journal (run_id, key);
CREATE INDEX journal_by_run ON journal (run_id, position);
