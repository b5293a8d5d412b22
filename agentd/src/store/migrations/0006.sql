-- Where a session's own rows begin when the ones before are another's: its jobs are counted from there, at every start.
CREATE INDEX events_forked ON events (session) WHERE kind = 'forked';
