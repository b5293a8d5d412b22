-- What was used, by day (days since 1970 in UTC), session and model. Kept when a session is removed: it was paid for.
CREATE TABLE usage (
    day         INTEGER NOT NULL,
    session     BLOB NOT NULL,
    model       TEXT NOT NULL,
    requests    INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cost        INTEGER,                    -- billionths of a US dollar; NULL: not known
    PRIMARY KEY (day, session, model)
) WITHOUT ROWID;

-- The rows of earlier releases count too; what they cost was not written down.
INSERT INTO usage
SELECT at / 86400000, session, '', count(*),
       sum(json_extract(body, '$.reply_received.usage.input_tokens')),
       sum(json_extract(body, '$.reply_received.usage.cache_write_tokens')),
       sum(json_extract(body, '$.reply_received.usage.cache_read_tokens')),
       sum(json_extract(body, '$.reply_received.usage.output_tokens')), NULL
FROM events WHERE kind = 'reply_received' GROUP BY 1, 2;
