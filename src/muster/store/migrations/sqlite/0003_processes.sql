CREATE TABLE processes (
  token TEXT PRIMARY KEY,
  driver_host TEXT NOT NULL,
  driver_pid INTEGER NOT NULL,
  driver_started TEXT NOT NULL,
  pid INTEGER,
  started TEXT,
  agent TEXT NOT NULL,
  noted_at REAL NOT NULL
) WITHOUT ROWID;
