-- Sessions: facts that are frozen when a session starts, and its place in the list.
CREATE TABLE sessions (
    id         BLOB PRIMARY KEY,            -- 16 bytes of a version 7 UUID
    name       TEXT,
    archived   INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,            -- milliseconds since 1970
    active_at  INTEGER NOT NULL,
    cwd        TEXT NOT NULL,
    title      TEXT NOT NULL DEFAULT '',
    spec       TEXT NOT NULL                -- JSON: model, provider, endpoint, system prompt, tool list
) WITHOUT ROWID;

CREATE UNIQUE INDEX sessions_name ON sessions (name) WHERE name IS NOT NULL AND archived = 0;

-- The event log: append-only, numbered per session without gaps.
CREATE TABLE events (
    session BLOB NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL,                  -- JSON
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
