-- Everything is keyed by its owner first, then by its session: one transaction's rows are
-- of one owner or of the few that a batch is for, no constraint spans owners, and every
-- table can be partitioned or distributed by `owner` as it stands. Texts that are keys
-- compare byte by byte, as the program compares them. Texts of people's are kept as JSON,
-- since they may hold a NUL and a text here may not.

-- Lets the rows of a table be seen and changed only on behalf of their owner, who is named
-- for each transaction, or by the store's own servants (feed, upkeep, leases), who say so.
-- Forced, so that the tables' owner is held to it as well. The settings are looked at
-- once a statement and not once a row.
CREATE FUNCTION throughline.guard(guarded regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', guarded);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', guarded);
    EXECUTE format($policy$
        CREATE POLICY owners ON %s USING (
            owner = ANY ((SELECT nullif(current_setting('throughline.owners', true), ''))::text[])
        )
    $policy$, guarded);
    EXECUTE format($policy$
        CREATE POLICY servants ON %s USING (
            (SELECT current_setting('throughline.servant', true)) = 'on'
        )
    $policy$, guarded);
END
$$;

-- Whose sessions these are. What changes how sessions hang together (forks, removals,
-- erasures) locks the owner's row; appends do not.
CREATE TABLE throughline.owner (
    owner text COLLATE "C" PRIMARY KEY
);

-- The number of a log: a session's own for good, even if another takes its id.
CREATE SEQUENCE throughline.log_number AS bigint;

-- One row a session, in use or in the trash. Written when something other than the counts
-- changes; what every append touches is in `head`.
CREATE TABLE throughline.session (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    parent text COLLATE "C",
    -- Entries 1 to `shared` are of other logs: see `inherits`.
    shared bigint NOT NULL,
    trashed_at bigint,
    birth text NOT NULL,
    -- The card, derived. The columns after it are taken from it, for finding sessions.
    card text NOT NULL,
    status text COLLATE "C" NOT NULL,
    name text COLLATE "C",
    project text COLLATE "C",
    agent text COLLATE "C",
    PRIMARY KEY (owner, log)
);

CREATE UNIQUE INDEX session_id ON throughline.session (owner, id);
-- A key is free again once its session is in the trash.
CREATE UNIQUE INDEX session_key ON throughline.session (owner, key)
    WHERE key IS NOT NULL AND trashed_at IS NULL;
CREATE INDEX session_trash ON throughline.session (owner, trashed_at)
    WHERE trashed_at IS NOT NULL;
-- Archived sessions are few, and counted whenever the others are listed.
CREATE INDEX session_archived ON throughline.session (owner)
    WHERE status = 'archived' AND trashed_at IS NULL;
CREATE INDEX session_name ON throughline.session (owner, name) WHERE name IS NOT NULL;
CREATE INDEX session_parent ON throughline.session (owner, parent) WHERE parent IS NOT NULL;

-- Where each log ends, and what every append touches of a card. Whoever writes to a
-- session locks its row here first. `epoch` grows with everything that changes a record
-- but is no append, so that a writer knows whether what it remembers still holds.
CREATE TABLE throughline.head (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    trashed boolean NOT NULL DEFAULT false,
    epoch bigint NOT NULL DEFAULT 0,
    head bigint NOT NULL,
    digest bytea NOT NULL,
    last_activity bigint NOT NULL,
    messages bigint NOT NULL,
    queries bigint NOT NULL,
    -- Tokens, model and provider, where there are any.
    latest text,
    PRIMARY KEY (owner, log)
);

-- The listing's order, so that a page is a walk along this index.
CREATE INDEX head_activity ON throughline.head (owner, last_activity, id) WHERE NOT trashed;

-- Sessions that are removed, and kept only for the entries that forks share.
CREATE TABLE throughline.kept (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    shared bigint NOT NULL,
    head bigint NOT NULL,
    birth text NOT NULL,
    PRIMARY KEY (owner, log)
);

-- The logs. The payload is the JSON of docs/data-model.md and is never written anew, since
-- the digest is over its bytes. `position` is the entry's place in the feed. No foreign keys
-- here: they would cost a look-up each for every entry, and `tl doctor` checks the same and
-- more.
CREATE TABLE throughline.entry (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    at bigint NOT NULL,
    digest bytea NOT NULL,
    position bigint NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (owner, log, seq)
);

-- Recognises a repeated append.
CREATE UNIQUE INDEX entry_id ON throughline.entry (owner, log, id);

-- Which logs' entries a fork shares: those up to `upto`, from where the row before ends,
-- are `base`'s.
CREATE TABLE throughline.inherits (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    upto bigint NOT NULL,
    base bigint NOT NULL,
    PRIMARY KEY (owner, log, upto)
);

CREATE INDEX inherits_base ON throughline.inherits (owner, base, upto);

-- Derived: what stands at the head of a session, where anything does.
CREATE TABLE throughline.standing (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    json text NOT NULL,
    PRIMARY KEY (owner, log)
);

-- Derived: the record at every so many entries and at a fork's first, so that a fork
-- anywhere in a log costs the same.
CREATE TABLE throughline.snapshot (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    seq bigint NOT NULL,
    json text NOT NULL,
    PRIMARY KEY (owner, log, seq)
);

-- Derived: tags, for finding sessions by them.
CREATE TABLE throughline.session_tag (
    owner text COLLATE "C" NOT NULL,
    tag text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    PRIMARY KEY (owner, tag, log)
);

CREATE INDEX session_tag_session ON throughline.session_tag (owner, log);

-- Attachments, once by content. Each owner has their own.
CREATE TABLE throughline.blob (
    owner text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (owner, digest)
);

-- Most attachments are compressed as they come.
ALTER TABLE throughline.blob ALTER data SET STORAGE EXTERNAL;

-- Derived: which logs' own entries name which attachments.
CREATE TABLE throughline.blob_use (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (owner, log, digest)
);

CREATE INDEX blob_use_blob ON throughline.blob_use (owner, digest);

-- The projects sessions belong to, and what each is recognised by.
CREATE TABLE throughline.project (
    owner text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    json text NOT NULL,
    PRIMARY KEY (owner, id)
);

SELECT throughline.guard(name::regclass) FROM unnest(ARRAY[
    'throughline.owner', 'throughline.session', 'throughline.head', 'throughline.kept',
    'throughline.entry', 'throughline.inherits', 'throughline.standing',
    'throughline.snapshot', 'throughline.session_tag', 'throughline.blob',
    'throughline.blob_use', 'throughline.project'
]) AS name;
