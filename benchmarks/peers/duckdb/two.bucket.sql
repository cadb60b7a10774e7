-- SEQ(A a, B b), joined on id.
-- The events of later steps are put into two buckets each, their own and the one before, so that everything within
-- the window of an a shares its bucket: the range join becomes an equality join with few candidates.
WITH a AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} AS k FROM events WHERE type = 'A'
), b AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'B'
)
SELECT a.ts AS ts_a, a.type AS type_a, a.id AS id_a, a.attr1 AS attr1_a, a.attr2 AS attr2_a,
       b.ts AS ts_b, b.type AS type_b, b.id AS id_b, b.attr1 AS attr1_b, b.attr2 AS attr2_b
FROM a
JOIN b ON b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
