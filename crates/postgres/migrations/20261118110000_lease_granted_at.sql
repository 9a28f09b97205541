-- When a lease was last granted or renewed. One that was granted later than the time it is
-- now expires by a clock that was set back since, and keeps nobody waiting. Rows of an older
-- version have no such time and expire as they did.
ALTER TABLE throughline.lease ADD COLUMN granted_at bigint NOT NULL DEFAULT 0;
