-- SEQ(A a, B b, C c, D d, E e, F f), joined on id: the bucketed join step by step, each step kept, so that no step is
-- joined before its time.
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
), up_to_b AS MATERIALIZED (
  SELECT a.k, a.ts AS ts_a, a.type AS type_a, a.id AS id_a, a.attr1 AS attr1_a, a.attr2 AS attr2_a,
         b.ts AS ts_b, b.type AS type_b, b.id AS id_b, b.attr1 AS attr1_b, b.attr2 AS attr2_b
  FROM a JOIN b ON b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
), up_to_c AS MATERIALIZED (
  SELECT up_to_b.*, c.ts AS ts_c, c.type AS type_c, c.id AS id_c, c.attr1 AS attr1_c, c.attr2 AS attr2_c
  FROM up_to_b JOIN c ON c.k = up_to_b.k AND c.ts > up_to_b.ts_b AND c.ts <= up_to_b.ts_a + {window}
), up_to_d AS MATERIALIZED (
  SELECT up_to_c.*, d.ts AS ts_d, d.type AS type_d, d.id AS id_d, d.attr1 AS attr1_d, d.attr2 AS attr2_d
  FROM up_to_c JOIN d ON d.k = up_to_c.k AND d.ts > up_to_c.ts_c AND d.ts <= up_to_c.ts_a + {window}
), up_to_e AS MATERIALIZED (
  SELECT up_to_d.*, e.ts AS ts_e, e.type AS type_e, e.id AS id_e, e.attr1 AS attr1_e, e.attr2 AS attr2_e
  FROM up_to_d JOIN e ON e.k = up_to_d.k AND e.ts > up_to_d.ts_d AND e.ts <= up_to_d.ts_a + {window}
)
SELECT up_to_e.* EXCLUDE (k), f.ts AS ts_f, f.type AS type_f, f.id AS id_f, f.attr1 AS attr1_f, f.attr2 AS attr2_f
FROM up_to_e JOIN f ON f.k = up_to_e.k AND f.ts > up_to_e.ts_e AND f.ts <= up_to_e.ts_a + {window}
