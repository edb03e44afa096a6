CREATE TABLE processes (
  token TEXT PRIMARY KEY,
  driver_host TEXT NOT NULL,
  driver_pid BIGINT NOT NULL,
  driver_started TEXT NOT NULL,
  pid BIGINT,
  started TEXT,
  agent TEXT NOT NULL,
  noted_at DOUBLE PRECISION NOT NULL
);
