-- Made by `make docs` from the migrations.
CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  name TEXT,
  workload TEXT NOT NULL,
  spec TEXT NOT NULL,
  state TEXT NOT NULL,
  ended_reason TEXT,
  error TEXT,
  result TEXT,
  tags TEXT NOT NULL,
  seed INTEGER NOT NULL,
  timeout REAL,
  concurrency INTEGER NOT NULL,
  active REAL NOT NULL DEFAULT 0,
  submitted INTEGER NOT NULL DEFAULT 0,
  parent_id TEXT,
  parent_key TEXT,
  origin_id TEXT,
  origin_reuse TEXT,
  origin_key TEXT,
  created_at REAL NOT NULL,
  started_at REAL,
  ended_at REAL,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,
  driver_host TEXT,
  driver_pid INTEGER,
  driver_started TEXT,
  lease_until REAL NOT NULL DEFAULT 0,
  last_seq INTEGER NOT NULL DEFAULT 0,
  calls_total INTEGER NOT NULL DEFAULT 0,
  calls_done INTEGER NOT NULL DEFAULT 0,
  calls_failed INTEGER NOT NULL DEFAULT 0,
  calls_uncertain INTEGER NOT NULL DEFAULT 0,
  calls_reused INTEGER NOT NULL DEFAULT 0
, dispatch TEXT, lineage TEXT, levels TEXT, owner TEXT, client TEXT, request_key TEXT, request_digest TEXT, request_id TEXT, continued_by TEXT, rules INTEGER);
CREATE INDEX runs_by_state ON runs (state, created_at);
CREATE INDEX runs_by_name ON runs (name, created_at);
CREATE UNIQUE INDEX runs_by_parent ON runs (parent_id, parent_key);
CREATE TABLE budgets (
  id TEXT PRIMARY KEY,
  cap INTEGER,
  reserved INTEGER NOT NULL DEFAULT 0,
  billed INTEGER NOT NULL DEFAULT 0,
  imputed INTEGER NOT NULL DEFAULT 0,
  uncertain INTEGER NOT NULL DEFAULT 0,
  CHECK (reserved >= 0)
) WITHOUT ROWID;
CREATE TABLE attempts (
  run_id TEXT NOT NULL,
  key TEXT NOT NULL,
  n INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  state TEXT NOT NULL,
  reserved INTEGER NOT NULL,
  cost INTEGER NOT NULL DEFAULT 0,
  lane TEXT NOT NULL,
  levels TEXT NOT NULL,
  started_at REAL NOT NULL,
  ended_at REAL,
  error TEXT, agent TEXT, batch_id TEXT, place INTEGER, size INTEGER, max_tokens INTEGER, live_cost INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, key, n)
) WITHOUT ROWID;
CREATE TABLE events (
  run_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  at REAL NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE TABLE partials (
  run_id TEXT NOT NULL,
  key TEXT NOT NULL,
  text TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (run_id, key)
) WITHOUT ROWID;
CREATE TABLE workers (
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started TEXT NOT NULL,
  seen_at REAL NOT NULL, queues TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (host, pid, started)
) WITHOUT ROWID;
CREATE UNIQUE INDEX attempts_by_batch ON attempts (batch_id, place) WHERE batch_id IS NOT NULL;
CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  desk TEXT NOT NULL,
  account TEXT NOT NULL,
  nonce TEXT NOT NULL,
  state TEXT NOT NULL,
  requests INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  tariffs TEXT NOT NULL,
  provider_id TEXT,
  file TEXT,
  driver_host TEXT,
  driver_pid INTEGER,
  driver_started TEXT,
  created_at REAL NOT NULL,
  sent_at REAL,
  submitted_at REAL,
  ended_at REAL,
  collected_at REAL,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  adopted INTEGER NOT NULL DEFAULT 0,
  rejected TEXT NOT NULL DEFAULT '[]',
  done INTEGER,
  word TEXT NOT NULL DEFAULT '',
  polled_at REAL,
  note TEXT NOT NULL DEFAULT '',
  error TEXT,
  reserved INTEGER NOT NULL DEFAULT 0,
  cost INTEGER NOT NULL DEFAULT 0,
  live_cost INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  succeeded INTEGER NOT NULL DEFAULT 0,
  errored INTEGER NOT NULL DEFAULT 0,
  canceled INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  uncertain INTEGER NOT NULL DEFAULT 0
, epoch INTEGER NOT NULL DEFAULT 0, lease_until REAL NOT NULL DEFAULT 0, claimed_at REAL, grace_until REAL, by_hand INTEGER NOT NULL DEFAULT 0, stalled INTEGER NOT NULL DEFAULT 0, waits_for TEXT, uploads INTEGER NOT NULL DEFAULT 0);
CREATE INDEX batches_by_state ON batches (state, created_at);
CREATE UNIQUE INDEX batches_by_provider ON batches (account, provider_id) WHERE provider_id IS NOT NULL;
CREATE TABLE batch_runs (
  batch_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  members INTEGER NOT NULL,
  PRIMARY KEY (batch_id, run_id)
) WITHOUT ROWID;
CREATE INDEX batch_runs_by_run ON batch_runs (run_id);
CREATE TABLE batch_bodies (
  batch_id TEXT NOT NULL,
  part INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (batch_id, part)
);
CREATE TABLE batch_lines (
  batch_id TEXT NOT NULL,
  part INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (batch_id, part)
);
CREATE TABLE traits (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
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
CREATE TABLE reviews (
  run_id TEXT NOT NULL,
  case_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  reviewer TEXT NOT NULL,
  opinion TEXT NOT NULL,
  note TEXT NOT NULL,
  reviewed_at REAL NOT NULL,
  PRIMARY KEY (run_id, case_id, subject, epoch, reviewer)
) WITHOUT ROWID;
CREATE TABLE baselines (
  name TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  set_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX baselines_by_run ON baselines (run_id);
CREATE TABLE requests (
  position INTEGER PRIMARY KEY,
  request TEXT NOT NULL
);
CREATE TABLE outcomes (
  position INTEGER PRIMARY KEY,
  outcome TEXT NOT NULL
);
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
CREATE UNIQUE INDEX journal_by_key ON journal (run_id, key);
CREATE INDEX journal_by_run ON journal (run_id, position);
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
CREATE TABLE slots (
  name TEXT PRIMARY KEY,
  place INTEGER NOT NULL,
  state TEXT NOT NULL,
  run_id TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  completed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX slots_by_run ON slots (run_id) WHERE run_id IS NOT NULL;
CREATE TABLE pools (
  name TEXT PRIMARY KEY,
  created_at REAL NOT NULL,
  drain_until REAL,
  driver_host TEXT,
  driver_pid INTEGER,
  driver_started TEXT,
  driven_until REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX runs_of_tasks ON runs (created_at) WHERE workload = 'task';
CREATE TABLE shared_context (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  set_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE slot_tasks (
  lineage TEXT PRIMARY KEY,
  slot TEXT NOT NULL,
  run_id TEXT NOT NULL
, work TEXT) WITHOUT ROWID;
CREATE INDEX slot_tasks_by_slot ON slot_tasks (slot);
CREATE INDEX slot_tasks_by_run ON slot_tasks (run_id);
CREATE UNIQUE INDEX runs_by_request ON runs (COALESCE(owner, ''), request_key) WHERE request_key IS NOT NULL;
CREATE INDEX runs_by_creation ON runs (created_at, id);
CREATE INDEX runs_by_end ON runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  user_name TEXT,
  client TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  request_id TEXT NOT NULL
, outcome TEXT NOT NULL DEFAULT 'done');
CREATE INDEX runs_due ON runs (workload, COALESCE(client, ''), created_at, id)
WHERE submitted = 1 AND COALESCE(parent_id, '') = '' AND driver_pid IS NULL
  AND CASE WHEN state = 'waiting' THEN COALESCE(ended_reason, '') <> 'awaiting_signal'
           ELSE state IN ('queued', 'interrupted') END;
CREATE INDEX runs_driven ON runs (id) WHERE driver_pid IS NOT NULL;
CREATE TABLE announcements (
  run_id TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  due_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_by_origin ON runs (origin_id) WHERE origin_id IS NOT NULL;
CREATE INDEX runs_by_continuation ON runs (continued_by) WHERE continued_by IS NOT NULL;
CREATE INDEX batches_stalled ON batches (created_at) WHERE stalled = 1;
CREATE INDEX batches_by_creation ON batches (created_at, id);
CREATE INDEX batches_by_provider_id ON batches (provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (owner, created_at, id) WHERE owner IS NOT NULL;
CREATE INDEX runs_by_workload ON runs (COALESCE(workload, ''), state, created_at, id, lineage);
CREATE INDEX runs_by_lineage ON runs (lineage, created_at, id) WHERE lineage IS NOT NULL;
CREATE TABLE run_levels (
  level TEXT NOT NULL,
  run_id TEXT NOT NULL,
  PRIMARY KEY (level, run_id)
) WITHOUT ROWID;
CREATE INDEX run_levels_by_run ON run_levels (run_id);
CREATE TABLE figures (
  run_id TEXT PRIMARY KEY,
  made_from TEXT NOT NULL,
  data TEXT NOT NULL
);
CREATE TABLE agent_costs (
  day INTEGER NOT NULL,
  agent TEXT NOT NULL,
  lane TEXT NOT NULL,
  run_id TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  PRIMARY KEY (day, agent, lane, run_id)
) WITHOUT ROWID;
CREATE INDEX agent_costs_by_run ON agent_costs (run_id);
CREATE TABLE run_agents (
  agent TEXT NOT NULL,
  created_at REAL NOT NULL,
  run_id TEXT NOT NULL,
  PRIMARY KEY (agent, created_at, run_id)
) WITHOUT ROWID;
CREATE INDEX run_agents_by_run ON run_agents (run_id);
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
