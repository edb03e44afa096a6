CREATE TABLE signals (
  address TEXT NOT NULL,
  channel TEXT NOT NULL,
  seq INTEGER NOT NULL,
  client_id TEXT NOT NULL,
  payload TEXT NOT NULL,
  sender TEXT NOT NULL,
  sent_at REAL NOT NULL,
  taken_by TEXT,
  PRIMARY KEY (address, channel, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX signals_by_client ON signals (address, client_id);
CREATE INDEX signals_untaken ON signals (address, channel, seq) WHERE taken_by IS NULL;

CREATE TABLE awaits (
  run_id TEXT NOT NULL,
  root_id TEXT NOT NULL,
  address TEXT NOT NULL,
  channel TEXT NOT NULL,
  until REAL,
  PRIMARY KEY (run_id, address, channel)
) WITHOUT ROWID;
CREATE INDEX awaits_by_address ON awaits (address, channel);
CREATE INDEX awaits_by_root ON awaits (root_id);
