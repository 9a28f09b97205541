-- Who may call a server that serves this store. Only hashes are kept, and rows stay when
-- tokens end: what was taken back is on record. The owner is a name and not a number,
-- since a token may be made before its owner has any session.
CREATE TABLE token (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    role TEXT NOT NULL,
    label TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
