-- Events that concern whole sessions, in addition to the entries appended to them. Entries and
-- events share one sequence of positions (`entry.pk` and `position`), which only grows: a new
-- position is greater than the largest in either table, and rows here remain when entries are
-- deleted. They hold ids rather than row ids, since the sessions may be deleted.
CREATE TABLE change (
    position INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    seq INTEGER
) STRICT;
