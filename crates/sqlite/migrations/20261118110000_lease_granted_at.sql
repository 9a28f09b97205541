-- When a lease was last granted or renewed. If that is in the future, the clock was set back
-- since, and the lease counts as expired. Rows of older versions have no such time and expire
-- as before.
ALTER TABLE lease ADD COLUMN granted_at INTEGER NOT NULL DEFAULT 0;
