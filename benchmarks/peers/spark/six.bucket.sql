-- SEQ(A a, B b, C c, D d, E e, F f), joined on id.
-- Buckets of one window: later steps are in two of them, their own and the one before, so that all within the window
-- of an a share its bucket and the range join becomes an equality join with few candidates.
WITH a AS (SELECT id, ts, ts DIV {window} AS k FROM events WHERE type = 'A'),
     b AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'B'),
     c AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'C'),
     d AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'D'),
     e AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'E'),
     f AS (SELECT id, ts, ts DIV {window} - back AS k FROM events LATERAL VIEW explode(array(0, 1)) AS back WHERE type = 'F')
SELECT a.id AS id, a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts, d.ts AS d_ts, e.ts AS e_ts, f.ts AS f_ts
FROM a
JOIN b ON b.id = a.id AND b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN c ON c.id = a.id AND c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + {window}
JOIN d ON d.id = a.id AND d.k = a.k AND d.ts > c.ts AND d.ts <= a.ts + {window}
JOIN e ON e.id = a.id AND e.k = a.k AND e.ts > d.ts AND e.ts <= a.ts + {window}
JOIN f ON f.id = a.id AND f.k = a.k AND f.ts > e.ts AND f.ts <= a.ts + {window}
