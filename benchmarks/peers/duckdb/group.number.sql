-- SEQ(A a, B{3,} b, C c), joined on id: how many B there are up to each event tells how many lie between two.
-- The events of c are put into two buckets each, so that the range join becomes an equality join.
WITH numbered AS (
  SELECT *, count(*) FILTER (WHERE type = 'B') OVER (PARTITION BY id ORDER BY ts) AS number FROM events WHERE type IN ('A', 'B', 'C')
), a AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} AS k FROM numbered WHERE type = 'A'
), c AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM numbered WHERE type = 'C'
)
SELECT a.ts AS ts_a, c.ts AS ts_c
FROM a
JOIN c ON c.k = a.k AND c.ts > a.ts AND c.ts <= a.ts + {window} AND c.number - a.number >= 3
