-- Search over transcripts. Filled when somebody searches, up to `indexed` of each session: what is written all day costs
-- nothing more for it. The index has no text of its own; rows of the log have it.
ALTER TABLE sessions ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;

CREATE TABLE texts (
    id      INTEGER PRIMARY KEY,            -- the row of `search`
    session BLOB NOT NULL,
    seq     INTEGER NOT NULL
);

CREATE INDEX texts_session ON texts (session);

CREATE VIRTUAL TABLE search USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
