-- Who does what alone, and until when by the database's clock. A row goes when its lease is
-- given back; numbers are never given out twice, so that whoever was slow is known by theirs.
-- Whoever writes under a lease holds its row until they have committed, so that nobody takes
-- it meanwhile. Not part of what a store keeps: it is not copied, and can be emptied when
-- nobody is at work.
CREATE SEQUENCE throughline.lease_number AS bigint;

CREATE TABLE throughline.lease (
    owner text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    holder text NOT NULL,
    number bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (owner, name)
);

SELECT throughline.guard('throughline.lease');
