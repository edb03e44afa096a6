CREATE TABLE processes (
  token TEXT COLLATE "C" PRIMARY KEY,
  driver_host TEXT COLLATE "C" NOT NULL,
  driver_pid BIGINT NOT NULL,
  driver_started TEXT COLLATE "C" NOT NULL,
  pid BIGINT,
  started TEXT COLLATE "C",
  agent TEXT COLLATE "C" NOT NULL,
  noted_at DOUBLE PRECISION NOT NULL
);
