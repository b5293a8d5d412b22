-- How much a session may do without asking, for the list; the log says the same.
ALTER TABLE sessions ADD COLUMN mode TEXT NOT NULL DEFAULT 'ask';
