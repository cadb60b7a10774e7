-- SEQ(!D d, A a, B b, C c), joined on id.
-- A window function finds for each a the latest d before it, which must lie before the window that ends with c.
-- The events of b and c are put into two buckets each, their own and the one before, so that everything within
-- the window of an a shares its bucket: the range join becomes an equality join with few candidates.
WITH marked AS (
  SELECT *, max(ts) FILTER (WHERE type = 'D') OVER (PARTITION BY id ORDER BY ts) AS latest FROM events WHERE type IN ('A', 'D')
), a AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} AS k FROM marked WHERE type = 'A'
), b AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'B'
), c AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'C'
)
SELECT a.ts AS ts_a, a.type AS type_a, a.id AS id_a, a.attr1 AS attr1_a, a.attr2 AS attr2_a,
       b.ts AS ts_b, b.type AS type_b, b.id AS id_b, b.attr1 AS attr1_b, b.attr2 AS attr2_b,
       c.ts AS ts_c, c.type AS type_c, c.id AS id_c, c.attr1 AS attr1_c, c.attr2 AS attr2_c
FROM a
JOIN b ON b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN c ON c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + {window} AND coalesce(a.latest < c.ts - {window}, true)
