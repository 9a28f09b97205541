-- Who may call a server that serves this store. Only hashes are kept, and rows stay when
-- tokens end: what was taken back is on record. Looked up by hash before it is known whose
-- it is, so neither key is led by the owner; there are few of them.
CREATE TABLE throughline.token (
    id text COLLATE "C" PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    owner text COLLATE "C" NOT NULL,
    role text NOT NULL,
    -- As JSON, like all texts of people's.
    label text,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);

SELECT throughline.guard('throughline.token');
