-- SEQ(A a, B b, !D d, C c), joined on id: NOT EXISTS over the bucketed join.
-- Buckets of one window: b and c are in two of them, their own and the one before, so that all within the window
-- of an a share its bucket and the range join becomes an equality join with few candidates.
WITH a AS (SELECT id, ts, ts DIV {window} AS k FROM events WHERE type = 'A'),
     b AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'B'),
     c AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'C')
SELECT a.id AS id, a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts
FROM a
JOIN b ON b.id = a.id AND b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN c ON c.id = a.id AND c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + {window}
WHERE NOT EXISTS (
  SELECT 1 FROM events d WHERE d.type = 'D' AND d.id = b.id AND d.ts > b.ts AND d.ts < c.ts)
