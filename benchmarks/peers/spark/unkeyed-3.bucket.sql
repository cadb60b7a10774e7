-- SEQ(A a, B b, C c), no key.
-- Buckets of one window: later steps are in two of them, their own and the one before, so that all within the window
-- of an a share its bucket and the range join becomes an equality join with few candidates.
WITH a AS (SELECT ts, ts DIV {window} AS k FROM events WHERE type = 'A'),
     b AS (SELECT ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'B'),
     c AS (SELECT ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'C')
SELECT a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts
FROM a
JOIN b ON b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN c ON c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + {window}
