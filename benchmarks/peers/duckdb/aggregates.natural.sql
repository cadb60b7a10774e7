-- SEQ(A a, B+ b, C c), joined on id, with aggregates of b: all triples, summed up by their ends.
-- The events of b and c are put into two buckets each, so that the range joins become equality joins.
WITH a AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} AS k FROM events WHERE type = 'A'
), b AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'B'
), c AS (
  SELECT *, id::BIGINT * 1048576 + ts // {window} - unnest([0, 1]) AS k FROM events WHERE type = 'C'
)
SELECT a.ts AS ts_a, c.ts AS ts_c, count(*) AS ts_count, sum(b.attr2)::BIGINT AS ts_sum,
       min(b.attr2)::BIGINT AS ts_least, max(b.attr2)::BIGINT AS ts_greatest, avg(b.attr2) AS average
FROM a
JOIN b ON b.k = a.k AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN c ON c.k = a.k AND c.ts > b.ts AND c.ts <= a.ts + {window}
GROUP BY a.ts, c.ts
