-- Which queues a worker takes runs of; none for a server, which drives only what no worker takes.
ALTER TABLE workers ADD COLUMN queues TEXT COLLATE "C" NOT NULL DEFAULT '';
