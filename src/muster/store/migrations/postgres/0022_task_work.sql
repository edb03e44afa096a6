-- What the branch of a task held when it was last saved after its run had ended, as JSON with the run.
ALTER TABLE slot_tasks ADD COLUMN work TEXT COLLATE "C";
