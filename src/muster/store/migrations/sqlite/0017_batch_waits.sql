-- Until when a batch whose create got no answer is looked for, who may take it over, and why a batch does not get on.
ALTER TABLE batches ADD COLUMN grace_until REAL;
ALTER TABLE batches ADD COLUMN by_hand INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN stalled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN waits_for TEXT;
ALTER TABLE batches ADD COLUMN uploads INTEGER NOT NULL DEFAULT 0;
CREATE INDEX batches_stalled ON batches (created_at) WHERE stalled = 1;

-- Two providers behind one gateway are two accounts.
UPDATE batches SET account = json_extract(desk, '$.kind') || '/' || account;
