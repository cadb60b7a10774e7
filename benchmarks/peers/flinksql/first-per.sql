SELECT ts_a, ts_c FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES A.ts AS ts_a, C.ts AS ts_c
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A X* B Y* C) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE
    A AS type = 'A',
    B AS type = 'B',
    C AS type = 'C',
    X AS type NOT IN ('B'),
    Y AS type NOT IN ('C')
)
