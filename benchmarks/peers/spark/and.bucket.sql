-- AND(A a, B b, C c), joined on id.
-- Buckets of one window: b and c are in three of them, their own and those beside it, so that all within a window of
-- an a share its bucket and the range join becomes an equality join with few candidates.
WITH a AS (SELECT id, ts, ts DIV {window} AS k FROM events WHERE type = 'A'),
     b AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(-1, 0, 1)) AS back WHERE type = 'B'),
     c AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(-1, 0, 1)) AS back WHERE type = 'C')
SELECT a.id AS id, a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts
FROM a
JOIN b ON b.id = a.id AND b.k = a.k AND b.ts BETWEEN a.ts - {window} AND a.ts + {window}
JOIN c ON c.id = a.id AND c.k = a.k AND greatest(a.ts, b.ts, c.ts) - least(a.ts, b.ts, c.ts) <= {window}
