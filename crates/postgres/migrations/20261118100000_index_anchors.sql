-- What the index was made from: fingerprints of some changes, as JSON. An index whose anchors
-- are not in the store was made from a history that the store no longer has, and is rebuilt.
-- An index from before this has none and is trusted: it is in the store's own database.
ALTER TABLE throughline.watermark ADD COLUMN anchors text NOT NULL DEFAULT '[]';
