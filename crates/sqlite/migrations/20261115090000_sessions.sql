-- Whose sessions these are. Everything else is keyed by the owner's number.
CREATE TABLE owner (
    pk INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
) STRICT;

-- One row a session. `owner`, `id`, `key`, `parent`, `shared`, `trashed_at`, `gone` and
-- `head_entry` are facts; every other column is the session's card, folded from its log
-- inside the transaction of each append, and can be made again from it.
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
-- The listing's order, so that a page is a walk along this index.
CREATE INDEX session_activity ON session (owner, last_activity, id)
    WHERE trashed_at IS NULL AND gone = 0;
CREATE INDEX session_trash ON session (owner, trashed_at)
    WHERE trashed_at IS NOT NULL AND gone = 0;
-- Archived sessions are few, and counted whenever the others are listed.
CREATE INDEX session_archived ON session (owner, last_activity, id)
    WHERE status = 'archived' AND trashed_at IS NULL AND gone = 0;
CREATE INDEX session_name ON session (owner, name) WHERE name IS NOT NULL;
CREATE INDEX session_parent ON session (owner, parent) WHERE parent IS NOT NULL;

-- How each session was born. Apart from `session` because appends rewrite that row.
CREATE TABLE birth (
    session INTEGER PRIMARY KEY REFERENCES session (pk),
    json TEXT NOT NULL
) STRICT;

-- The log, in order of arrival: whoever appends writes to the end of one B-tree, and a
-- commit touches few pages however many sessions it is for. Within a log, entries are
-- found by their links. `back` is the entry before; `jump` is the one whose number is
-- this one's with its lowest set bit cleared, so that any entry is a few steps from any
-- later one. A fork's first own entry leads back into the log it was forked from.
-- The payload is the JSON of docs/data-model.md and is never written anew, since the
-- digest is over its bytes. It stands last, so that following links does not read it. No foreign keys here: they
-- would cost a look-up each for every entry, and `tl doctor` checks the same and more.
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

-- Recognises a repeated append. Not unique: ids are the callers' own, and one owner's
-- must not be able to collide with another's.
CREATE INDEX entry_id ON entry (id, session, seq);

-- Which sessions' entries a fork shares: those up to `upto`, from where the row before
-- ends, are `base`'s. Reading needs only the links; this is for knowing what must stay.
CREATE TABLE inherits (
    session INTEGER NOT NULL REFERENCES session (pk),
    upto INTEGER NOT NULL,
    base INTEGER NOT NULL REFERENCES session (pk),
    PRIMARY KEY (session, upto)
) STRICT, WITHOUT ROWID;

CREATE INDEX inherits_base ON inherits (base, upto);

-- Derived: what stands at the head of a session (pins, decisions, checkpoints), where
-- anything does.
CREATE TABLE standing (
    session INTEGER PRIMARY KEY REFERENCES session (pk),
    json TEXT NOT NULL
) STRICT;

-- Derived: the record at every so many entries and at a fork's first, so that a fork
-- anywhere in a log costs the same.
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

-- Attachments, once by content. Each owner has their own.
CREATE TABLE blob (
    pk INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL REFERENCES owner (pk),
    digest BLOB NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (owner, digest)
) STRICT;

-- Derived: which sessions' own entries name which attachments.
CREATE TABLE blob_use (
    session INTEGER NOT NULL REFERENCES session (pk),
    blob INTEGER NOT NULL REFERENCES blob (pk),
    PRIMARY KEY (session, blob)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_use_blob ON blob_use (blob);

-- The projects sessions belong to, and what each is recognised by.
CREATE TABLE project (
    owner INTEGER NOT NULL REFERENCES owner (pk),
    id TEXT NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
