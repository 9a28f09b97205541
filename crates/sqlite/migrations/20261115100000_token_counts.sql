-- Derived, apart from `entry`: how many tokens each entry costs in a request, counted
-- once per encoding by whoever builds one, so that a budget is a sum and not a count.
-- Can be dropped at any time; what is missing is counted again.
CREATE TABLE token_count (
    encoding TEXT NOT NULL,
    entry INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (encoding, entry)
) STRICT, WITHOUT ROWID;

CREATE INDEX token_count_entry ON token_count (entry);
