CREATE TABLE signals (
  address TEXT COLLATE "C" NOT NULL,
  channel TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL,
  sender TEXT COLLATE "C" NOT NULL,
  sent_at DOUBLE PRECISION NOT NULL,
  taken_by TEXT COLLATE "C",
  PRIMARY KEY (address, channel, seq)
);
CREATE UNIQUE INDEX signals_by_client ON signals (address, client_id);
CREATE INDEX signals_untaken ON signals (address, channel, seq) WHERE taken_by IS NULL;

CREATE TABLE awaits (
  run_id TEXT COLLATE "C" NOT NULL,
  root_id TEXT COLLATE "C" NOT NULL,
  address TEXT COLLATE "C" NOT NULL,
  channel TEXT COLLATE "C" NOT NULL,
  until DOUBLE PRECISION,
  PRIMARY KEY (run_id, address, channel)
);
CREATE INDEX awaits_by_address ON awaits (address, channel);
CREATE INDEX awaits_by_root ON awaits (root_id);
