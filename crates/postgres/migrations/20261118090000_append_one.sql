-- What `append` does, for one entry to one session: whoever speaks alone waits for all of it,
-- and the lists of a batch, each made into a table of one row, would be a fifth of that.
--
-- Whatever can be said as an assignment is: that is worked out on the spot, where a statement
-- is started and ended each time. The head is looked up by its key however small the table
-- was when the database planned it, which it does once for each connection.
CREATE FUNCTION throughline.append_one(
    role_to_act_in text, how_sure text, mark integer,
    whose text, to_log bigint, new_head bigint, new_digest bytea, activity bigint,
    messages_now bigint, queries_now bigint, latest_now text,
    epoch_then bigint, head_then bigint,
    entry_id uuid, entry_at bigint, entry_payload text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    done text;
    last_position bigint;
BEGIN
    done := set_config('role', role_to_act_in, true);
    done := set_config('throughline.owners', ARRAY[whose]::text, true);
    done := set_config('throughline.servant', 'off', true);
    done := set_config('enable_seqscan', 'off', true);
    IF how_sure <> '' THEN
        done := set_config('synchronous_commit', how_sure, true);
    END IF;

    -- Locks the head as well.
    UPDATE throughline.head
    SET head = new_head, digest = new_digest, last_activity = activity,
        messages = messages_now, queries = queries_now, latest = latest_now
    WHERE owner = whose AND log = to_log AND epoch = epoch_then AND head = head_then
        AND NOT trashed;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a session is not where its writer believes' USING ERRCODE = 'TL001';
    END IF;

    -- From where on positions are taken here: see the feed.
    last_position := coalesce(pg_sequence_last_value('throughline.feed_position'), 0);
    done := pg_advisory_xact_lock_shared(mark, (last_position & 4294967295)::bit(32)::int)::text;

    INSERT INTO throughline.entry (owner, log, seq, id, at, digest, position, payload)
    VALUES (whose, to_log, new_head, entry_id, entry_at, new_digest,
        nextval('throughline.feed_position'), entry_payload);
END
$$;
