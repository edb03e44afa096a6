-- Images and documents, each once by the digest of its bytes, and the runs that name them.
CREATE TABLE media (
  digest TEXT COLLATE "C" PRIMARY KEY,
  type TEXT COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  data BYTEA NOT NULL
);
CREATE TABLE run_media (
  run_id TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (run_id, digest)
);
CREATE INDEX run_media_by_digest ON run_media (digest);
