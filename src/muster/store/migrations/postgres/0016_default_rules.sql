-- The version of a run's default limits of tokens; NULL: the first, of runs that were stored before this.
ALTER TABLE runs ADD COLUMN rules INTEGER;
