-- The owners of sessions. Everything else refers to an owner by row id.
CREATE TABLE owner (
    pk INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
) STRICT;

-- One row per session. `owner`, `id`, `key`, `parent`, `shared`, `trashed_at`, `gone` and
-- `head_entry` are primary data; every other column is derived session info, folded from the
-- log inside the transaction of each append, and can be rebuilt from it.
CREATE TABLE session (
    pk INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL REFERENCES owner (pk),
    id TEXT NOT NULL,
    key TEXT,
    parent TEXT,
    -- Entries 1 to `shared` belong to other sessions: see `inherits`.
    shared INTEGER NOT NULL,
    trashed_at INTEGER,
    -- Removed, and kept only for the entries that forks share.
    gone INTEGER NOT NULL DEFAULT 0,

    head INTEGER NOT NULL,
    digest BLOB NOT NULL,
    last_activity INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    queries INTEGER NOT NULL,
    tokens TEXT,
    restoration TEXT,
    compactions INTEGER NOT NULL,
    last_compaction INTEGER,
    status TEXT NOT NULL,
    name TEXT,
    named_by TEXT NOT NULL,
    description TEXT,
    lineage TEXT NOT NULL,
    project TEXT,
    workspace TEXT,
    agent TEXT,
    agent_path TEXT,
    model TEXT,
    provider TEXT,
    tags TEXT,
    preview TEXT NOT NULL,
    -- Where the last entry is: a fact, and touched with the card.
    head_entry INTEGER
) STRICT;

CREATE UNIQUE INDEX session_id ON session (owner, id) WHERE gone = 0;
-- A key is free again once its session is in the trash.
CREATE UNIQUE INDEX session_key ON session (owner, key)
    WHERE key IS NOT NULL AND trashed_at IS NULL AND gone = 0;
-- In listing order, so that a page is one range scan of this index.
CREATE INDEX session_activity ON session (owner, last_activity, id)
    WHERE trashed_at IS NULL AND gone = 0;
CREATE INDEX session_trash ON session (owner, trashed_at)
    WHERE trashed_at IS NOT NULL AND gone = 0;
-- Archived sessions are few, and counted whenever the others are listed.
CREATE INDEX session_archived ON session (owner, last_activity, id)
    WHERE status = 'archived' AND trashed_at IS NULL AND gone = 0;
CREATE INDEX session_name ON session (owner, name) WHERE name IS NOT NULL;
CREATE INDEX session_parent ON session (owner, parent) WHERE parent IS NOT NULL;

-- The header of each session. Separate from `session` because appends rewrite that row.
CREATE TABLE birth (
    session INTEGER PRIMARY KEY REFERENCES session (pk),
    json TEXT NOT NULL
) STRICT;

-- The log, in order of arrival: appends go to the end of one B-tree, and a commit touches few
-- pages however many sessions it is for. Within a log, entries are found by their skip-list
-- links. `back` is the entry before; `jump` is the one whose number is this one's with its
-- lowest set bit cleared, so that any entry is O(log n) steps from any later one. A fork's
-- first own entry links back into the log it was forked from. The payload is the JSON of
-- docs/data-model.md and is never re-encoded, since the digest covers its bytes. It is the last
-- column, so that following links does not read it. There are no foreign keys: they would cost
-- a lookup for every entry, and `tl doctor` checks the same and more.
CREATE TABLE entry (
    pk INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    back INTEGER,
    jump INTEGER,
    id BLOB NOT NULL,
    at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    payload TEXT NOT NULL
) STRICT;

-- Recognises a repeated append. Not unique: ids are chosen by callers, and one owner's must not
-- be able to collide with another's.
CREATE INDEX entry_id ON entry (id, session, seq);

-- Which sessions' entries a fork shares: those up to `upto`, from where the previous row ends,
-- belong to `base`. Reading needs only the links; this records which entries must be retained.
CREATE TABLE inherits (
    session INTEGER NOT NULL REFERENCES session (pk),
    upto INTEGER NOT NULL,
    base INTEGER NOT NULL REFERENCES session (pk),
    PRIMARY KEY (session, upto)
) STRICT, WITHOUT ROWID;

CREATE INDEX inherits_base ON inherits (base, upto);

-- Derived: the session state at the head (pins, decisions, checkpoints), if not empty.
CREATE TABLE standing (
    session INTEGER PRIMARY KEY REFERENCES session (pk),
    json TEXT NOT NULL
) STRICT;

-- Derived: snapshots of the record at regular intervals and at each fork's first entry, so that
-- forking anywhere in a log costs the same.
CREATE TABLE snapshot (
    session INTEGER NOT NULL REFERENCES session (pk),
    seq INTEGER NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

-- Derived: tags, for finding sessions by them.
CREATE TABLE session_tag (
    owner INTEGER NOT NULL,
    tag TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session (pk),
    PRIMARY KEY (owner, tag, session)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_tag_session ON session_tag (session);

-- Attachments, deduplicated by content per owner.
CREATE TABLE blob (
    pk INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL REFERENCES owner (pk),
    digest BLOB NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (owner, digest)
) STRICT;

-- Derived: which sessions' own entries refer to which attachments.
CREATE TABLE blob_use (
    session INTEGER NOT NULL REFERENCES session (pk),
    blob INTEGER NOT NULL REFERENCES blob (pk),
    PRIMARY KEY (session, blob)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_use_blob ON blob_use (blob);

-- The projects sessions belong to, and how each is recognised.
CREATE TABLE project (
    owner INTEGER NOT NULL REFERENCES owner (pk),
    id TEXT NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
