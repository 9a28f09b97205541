-- What happened to sessions as a whole, beside the entries appended to them. Entries and
-- these share one row of positions (`entry.pk` and `position`), which only grows: a
-- position is taken after the largest in either table, and the rows here stay when
-- entries go. Ids and not numbers, since what they tell of may be gone.
CREATE TABLE change (
    position INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    seq INTEGER
) STRICT;
