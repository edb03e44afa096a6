-- Images and documents, each once by the digest of its bytes, and the runs that name them.
CREATE TABLE media (
  digest TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  size INTEGER NOT NULL,
  data BLOB NOT NULL
);
CREATE TABLE run_media (
  run_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (run_id, digest)
) WITHOUT ROWID;
CREATE INDEX run_media_by_digest ON run_media (digest);
