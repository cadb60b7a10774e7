-- One match for each start: the same as all matches only where a type comes once in a key and window.
-- No E after a D between B and C, put by hand as its complement: first a part without D, then one without E.
SELECT ts_a, ts_b, ts_c FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES A.ts AS ts_a, B.ts AS ts_b, C.ts AS ts_c
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A X* B Y*? Z*? C) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE
    A AS type = 'A',
    B AS type = 'B',
    C AS type = 'C',
    X AS type NOT IN ('B'),
    Y AS type NOT IN ('C', 'D'),
    Z AS type NOT IN ('C', 'E')
)
