-- Derived: what can be found, and how far it goes. Fed behind the appends by one process at
-- a time, which holds the row of `watermark`; can be emptied at any time and fed again.
--
-- There is no text search of the database's own here: its operators may not be used with
-- an index on a table with row-level security, since they are not known to keep to
-- themselves what they see. So words are in ordinary tables, found by equality.

-- How far the index goes, what made it, and how often something was taken out of it. One
-- row. Everybody may know; only servants write.
CREATE TABLE throughline.watermark (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    made text NOT NULL,
    upto bigint NOT NULL DEFAULT 0,
    removals bigint NOT NULL DEFAULT 0
);

ALTER TABLE throughline.watermark ENABLE ROW LEVEL SECURITY;
ALTER TABLE throughline.watermark FORCE ROW LEVEL SECURITY;
CREATE POLICY readers ON throughline.watermark FOR SELECT USING (true);
CREATE POLICY servants ON throughline.watermark USING (
    (SELECT current_setting('throughline.servant', true)) = 'on'
);

-- One row a passage, narrow: what it is chosen by. `number` is its place in a block of 256
-- (block `number / 256`), or below zero while its words are beside it in `passage_text`.
-- `vector` is what it means, in bytes; or a `halfvec`, see below.
CREATE TABLE throughline.passage (
    owner text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    number bigint NOT NULL,
    role text NOT NULL,
    at bigint NOT NULL,
    authors text NOT NULL,
    files text NOT NULL,
    vector bytea NOT NULL,
    PRIMARY KEY (owner, session, seq)
);

CREATE UNIQUE INDEX passage_number ON throughline.passage (owner, number);

CREATE SEQUENCE throughline.loose_number AS bigint;

-- The rest of it: what is shown, and its words as long as it is in no block.
CREATE TABLE throughline.passage_text (
    owner text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    kept text NOT NULL,
    terms text,
    PRIMARY KEY (owner, session, seq)
);

-- Passages at the beginning of forks, which have words of the session they were forked from.
CREATE TABLE throughline.passage_beyond (
    owner text COLLATE "C" NOT NULL,
    origin text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (owner, origin, session, seq)
);

-- How long the passages of a block are: four bytes each; zeroes where there is none any more.
CREATE TABLE throughline.block (
    owner text COLLATE "C" NOT NULL,
    block integer NOT NULL,
    lengths bytea NOT NULL,
    PRIMARY KEY (owner, block)
);

-- Which passages of a block have a word: three bytes each, its place, how often it is said
-- there, and how often it counts. `own` says in how many it is said.
CREATE TABLE throughline.word (
    owner text COLLATE "C" NOT NULL,
    block integer NOT NULL,
    term text COLLATE "C" NOT NULL,
    own smallint NOT NULL,
    postings bytea NOT NULL,
    PRIMARY KEY (owner, block, term)
);

SELECT throughline.guard(name::regclass) FROM unnest(ARRAY[
    'throughline.passage', 'throughline.passage_text', 'throughline.passage_beyond',
    'throughline.block', 'throughline.word'
]) AS name;

-- Has the database compare vectors itself, where it can: by pgvector's `halfvec`. Empties
-- the index if that is new; to be called by whoever owns the schema, now or when pgvector
-- has been installed.
CREATE FUNCTION throughline.use_pgvector() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')
        AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector')
    THEN
        BEGIN
            CREATE EXTENSION vector;
        EXCEPTION WHEN insufficient_privilege THEN
            -- Whoever may can do it later.
            RETURN false;
        END;
    END IF;
    -- Halves came with pgvector 0.7.
    IF to_regtype('halfvec') IS NULL THEN
        RETURN false;
    END IF;
    IF (SELECT atttypid FROM pg_attribute
        WHERE attrelid = 'throughline.passage'::regclass AND attname = 'vector')
        = 'bytea'::regtype
    THEN
        TRUNCATE throughline.passage, throughline.passage_text, throughline.passage_beyond,
            throughline.block, throughline.word, throughline.watermark;
        ALTER TABLE throughline.passage ALTER vector TYPE halfvec(256) USING NULL;
    END IF;
    RETURN true;
END
$$;

SELECT throughline.use_pgvector();
