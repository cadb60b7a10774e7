-- AND(A a, B b, C c), joined on id.
-- The events of b and c are put into three buckets each, their own and those beside it, so that everything within
-- a window of an a shares its bucket: the range join becomes an equality join with few candidates.
WITH a AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} AS k FROM events WHERE type = 'A'
), b AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([-1, 0, 1]) AS k FROM events WHERE type = 'B'
), c AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([-1, 0, 1]) AS k FROM events WHERE type = 'C'
)
SELECT a.ts AS ts_a, a.type AS type_a, a.id AS id_a, a.attr1 AS attr1_a, a.attr2 AS attr2_a,
       b.ts AS ts_b, b.type AS type_b, b.id AS id_b, b.attr1 AS attr1_b, b.attr2 AS attr2_b,
       c.ts AS ts_c, c.type AS type_c, c.id AS id_c, c.attr1 AS attr1_c, c.attr2 AS attr2_c
FROM a
JOIN b ON b.k = a.k AND b.ts BETWEEN a.ts - {window} AND a.ts + {window}
JOIN c ON c.k = a.k AND greatest(a.ts, b.ts, c.ts) - least(a.ts, b.ts, c.ts) <= {window}
