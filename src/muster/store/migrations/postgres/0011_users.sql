ALTER TABLE runs ADD COLUMN owner TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN client TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN request_key TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN request_digest TEXT COLLATE "C";
CREATE UNIQUE INDEX runs_by_request ON runs (COALESCE(owner, ''), request_key) WHERE request_key IS NOT NULL;
CREATE INDEX runs_by_creation ON runs (created_at, id);
CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE audit (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at DOUBLE PRECISION NOT NULL,
  user_name TEXT COLLATE "C",
  client TEXT COLLATE "C" NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  request_id TEXT COLLATE "C" NOT NULL
);
