-- A batch of appends whose outcome its writer has worked out beforehand, in one statement: the
-- database is told on whose behalf, checks what the writer took for granted and writes it all.
-- If a session does not stand where it is said to (`before` and `epoch`), or an entry is there
-- already, everything is refused and nothing is left behind.
--
-- Whatever is looked up here is looked up by its key, however large the tables are. The
-- database plans that once for each connection, and must not do so by how large the tables
-- were then.
CREATE FUNCTION throughline.append(
    role_to_act_in text, on_behalf_of text[], how_sure text, mark integer,
    head_owners text[], head_logs bigint[], heads bigint[], head_digests bytea[],
    activities bigint[], messages_of bigint[], queries_of bigint[], latest_of text[],
    epochs bigint[], heads_before bigint[],
    owners text[], logs bigint[], seqs bigint[], ids uuid[], ats bigint[], digests bytea[],
    payloads text[]
) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET jit = off
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    touched bigint;
BEGIN
    PERFORM set_config('role', role_to_act_in, true),
        set_config('throughline.owners', on_behalf_of::text, true),
        set_config('throughline.servant', 'off', true);
    IF how_sure <> '' THEN
        PERFORM set_config('synchronous_commit', how_sure, true);
    END IF;

    -- Locks the heads as well, in the order in which everybody does.
    UPDATE throughline.head h
    SET head = a.head, digest = a.digest, last_activity = a.last_activity,
        messages = a.messages, queries = a.queries, latest = a.latest
    FROM unnest(head_owners, head_logs, heads, head_digests, activities, messages_of,
        queries_of, latest_of, epochs, heads_before)
        AS a (owner, log, head, digest, last_activity, messages, queries, latest, epoch, before)
    WHERE h.owner = a.owner AND h.log = a.log AND h.epoch = a.epoch AND h.head = a.before
        AND NOT h.trashed;
    GET DIAGNOSTICS touched = ROW_COUNT;
    IF touched <> cardinality(head_logs) THEN
        RAISE EXCEPTION 'a session is not where its writer believes' USING ERRCODE = 'TL001';
    END IF;

    -- From where on positions are taken here: see the feed.
    PERFORM pg_advisory_xact_lock_shared(mark,
        (CASE WHEN is_called THEN last_value ELSE 0 END & 4294967295)::bit(32)::int)
    FROM throughline.feed_position;

    INSERT INTO throughline.entry (owner, log, seq, id, at, digest, position, payload)
    SELECT a.owner, a.log, a.seq, a.id, a.at, a.digest,
        nextval('throughline.feed_position'), a.payload
    FROM unnest(owners, logs, seqs, ids, ats, digests, payloads)
        AS a (owner, log, seq, id, at, digest, payload);
END
$$;
