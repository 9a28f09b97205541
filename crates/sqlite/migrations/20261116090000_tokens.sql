-- API tokens for servers that serve this store. Only hashes are stored, and rows remain when
-- tokens expire or are revoked, as a record. The owner is a name rather than a row id, since a
-- token may be created before its owner has any session.
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
