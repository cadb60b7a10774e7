-- SEQ(A a, B b, C c) KEEP FIRST PER a, joined on id: the first b after a, and the first c after that.
WITH a AS (FROM events WHERE type = 'A'), b AS (FROM events WHERE type = 'B'), c AS (FROM events WHERE type = 'C')
SELECT a.ts AS ts_a, c.ts AS ts_c
FROM a
ASOF JOIN b ON b.id = a.id AND b.ts > a.ts
ASOF JOIN c ON c.id = b.id AND c.ts > b.ts
WHERE c.ts <= a.ts + {window}
