-- An append waits for a locked session for this long and is then refused, so that it does
-- not hold up appends to other sessions; its writer tries again later.
ALTER FUNCTION throughline.append SET lock_timeout = '250ms';
ALTER FUNCTION throughline.append_one SET lock_timeout = '250ms';
