-- Who does what alone, and until when by this machine's clock. A row goes when its lease is
-- given back; numbers are never given out twice, so that whoever was slow is known by theirs.
-- The owner is a name and not a number, since nobody becomes known by a lease. Not part of
-- what a store keeps: it is not copied, and can be emptied when nobody is at work.
CREATE TABLE lease (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    UNIQUE (owner, name)
) STRICT;
