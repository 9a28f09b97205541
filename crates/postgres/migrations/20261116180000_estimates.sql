-- Nothing is counted of who owns rows. The database plans by what it last counted, and an
-- owner who came after that has, for all it knows, no rows: then it finds it as good to go
-- through all that an owner has as to look one of them up by its key. Without counts it
-- takes every owner to have a two-hundredth of a table, and goes by keys.
DO $$
DECLARE
    kept regclass;
BEGIN
    FOR kept IN
        SELECT c.oid FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'throughline'::regnamespace AND c.relkind IN ('r', 'p')
            AND a.attname = 'owner' AND NOT a.attisdropped
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN owner SET STATISTICS 0', kept);
    END LOOP;
END
$$;
