-- SEQ(A a, B b, C c, !D d), joined on id: a window function finds for each c the next d, which must lie behind the
-- window that starts with a.
-- Buckets of one window: later steps are in two of them, their own and the one before, so that all within the window
-- of an a share its bucket and the range join becomes an equality join with few candidates.
WITH marked AS (
  SELECT id, ts, type, min(CASE WHEN type = 'D' THEN ts END) OVER (PARTITION BY id ORDER BY ts DESC) AS following
  FROM events WHERE type IN ('C', 'D')),
     a AS (SELECT id, ts, ts DIV {window} AS k FROM events WHERE type = 'A'),
     b AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'B'),
     c AS (SELECT id, ts, following, ts DIV {window} - back AS k FROM marked LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'C')
SELECT a.id AS id, a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts
FROM a
JOIN b ON b.id = a.id AND b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN c ON c.id = a.id AND c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + {window} AND coalesce(c.following > a.ts + {window}, true)
