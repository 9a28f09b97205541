-- Leases: exclusive claims on work, which expire by this machine's clock. A row is deleted when
-- its lease is released; fencing tokens are never reused, so that a stale holder is recognised
-- by its token. The owner is a name rather than a row id, since a lease does not create an
-- owner. Leases are not part of the stored data: they are not copied, and can be deleted when
-- no process is working.
CREATE TABLE lease (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    UNIQUE (owner, name)
) STRICT;
