-- SEQ(A a, B b, C c) KEEP LAST PER c, joined on id: the last b before c, and the last a before that.
WITH a AS (FROM events WHERE type = 'A'), b AS (FROM events WHERE type = 'B'), c AS (FROM events WHERE type = 'C')
SELECT a.ts AS ts_a, c.ts AS ts_c
FROM c
ASOF JOIN b ON b.id = c.id AND b.ts < c.ts
ASOF JOIN a ON a.id = b.id AND a.ts < b.ts
WHERE c.ts <= a.ts + {window}
