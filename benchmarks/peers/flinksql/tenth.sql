-- Every start has one match: ten in a row of the A events.
SELECT ts_last FROM (SELECT * FROM events WHERE type = 'A') MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES LAST(A.ts) AS ts_last
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A{10}) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE A AS type = 'A'
)
