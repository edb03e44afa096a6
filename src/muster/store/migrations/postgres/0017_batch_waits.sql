-- Until when a batch whose create got no answer is looked for, who may take it over, and why a batch does not get on.
ALTER TABLE batches ADD COLUMN grace_until DOUBLE PRECISION;
ALTER TABLE batches ADD COLUMN by_hand BIGINT NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN stalled BIGINT NOT NULL DEFAULT 0;
ALTER TABLE batches ADD COLUMN waits_for TEXT COLLATE "C";
ALTER TABLE batches ADD COLUMN uploads BIGINT NOT NULL DEFAULT 0;
CREATE INDEX batches_stalled ON batches (created_at) WHERE stalled = 1;

-- Two providers behind one gateway are two accounts.
UPDATE batches SET account = (desk::json ->> 'kind') || '/' || account;
