-- What happened to sessions as a whole, beside the entries appended to them. Entries and
-- these share one row of positions. A writer takes its positions when it has locked what
-- it writes to, so that within a session they grow with what happened; before that it takes
-- a shared lock that says from where on (see `feed.rs`), so that no reader passes over a
-- position that is committed later.
CREATE SEQUENCE throughline.feed_position AS bigint;

CREATE INDEX entry_position ON throughline.entry (position);

CREATE TABLE throughline.change (
    position bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    seq bigint,
    PRIMARY KEY (owner, position)
);

CREATE INDEX change_position ON throughline.change (position);

SELECT throughline.guard('throughline.change');
