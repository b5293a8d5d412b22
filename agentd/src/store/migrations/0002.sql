-- The audit: one chain over all sessions, kept when a session is removed. Everything a row says is in `body`, which the
-- hash covers; what queries need is drawn from it. AUTOINCREMENT remembers the last number ever given, so that rows
-- missing at the end are noticed, too.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    body    TEXT NOT NULL,                  -- JSON
    hash    BLOB NOT NULL,                  -- SHA-256(hash of the row before, id as 8 bytes, body)
    at      INTEGER GENERATED ALWAYS AS (body ->> '$.at') VIRTUAL,
    session TEXT GENERATED ALWAYS AS (body ->> '$.session') VIRTUAL
);

CREATE INDEX audit_at ON audit (at);
