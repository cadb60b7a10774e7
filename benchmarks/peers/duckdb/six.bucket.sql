-- SEQ(A a, B b, C c, D d, E e, F f), joined on id.
-- The events of later steps are put into two buckets each, their own and the one before, so that everything within
-- the window of an a shares its bucket: the range join becomes an equality join with few candidates.
WITH a AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} AS k FROM events WHERE type = 'A'
), b AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'B'
), c AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'C'
), d AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'D'
), e AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'E'
), f AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'F'
)
SELECT a.ts AS ts_a, a.type AS type_a, a.id AS id_a, a.attr1 AS attr1_a, a.attr2 AS attr2_a,
       b.ts AS ts_b, b.type AS type_b, b.id AS id_b, b.attr1 AS attr1_b, b.attr2 AS attr2_b,
       c.ts AS ts_c, c.type AS type_c, c.id AS id_c, c.attr1 AS attr1_c, c.attr2 AS attr2_c,
       d.ts AS ts_d, d.type AS type_d, d.id AS id_d, d.attr1 AS attr1_d, d.attr2 AS attr2_d,
       e.ts AS ts_e, e.type AS type_e, e.id AS id_e, e.attr1 AS attr1_e, e.attr2 AS attr2_e,
       f.ts AS ts_f, f.type AS type_f, f.id AS id_f, f.attr1 AS attr1_f, f.attr2 AS attr2_f
FROM a
JOIN b ON b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN c ON c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + {window}
JOIN d ON d.k = a.k AND d.ts > c.ts AND d.ts <= a.ts + {window}
JOIN e ON e.k = a.k AND e.ts > d.ts AND e.ts <= a.ts + {window}
JOIN f ON f.k = a.k AND f.ts > e.ts AND f.ts <= a.ts + {window}
