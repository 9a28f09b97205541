-- Derived, separate from `entry`: the number of tokens of each entry in a request, counted once
-- per encoding when a request is built, so that later requests only sum. Can be dropped at any
-- time; missing counts are computed again.
CREATE TABLE token_count (
    encoding TEXT NOT NULL,
    entry INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (encoding, entry)
) STRICT, WITHOUT ROWID;

CREATE INDEX token_count_entry ON token_count (entry);
