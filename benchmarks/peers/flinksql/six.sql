-- One match for each start: the same as all matches only where a type comes once in a key and window.
SELECT ts_a, ts_b, ts_c, ts_d, ts_e, ts_f FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES A.ts AS ts_a, B.ts AS ts_b, C.ts AS ts_c, D.ts AS ts_d, E.ts AS ts_e, F.ts AS ts_f
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A U* B V* C W* D X* E Y* F) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE
    A AS type = 'A',
    B AS type = 'B',
    C AS type = 'C',
    D AS type = 'D',
    E AS type = 'E',
    F AS type = 'F',
    U AS type NOT IN ('B'),
    V AS type NOT IN ('C'),
    W AS type NOT IN ('D'),
    X AS type NOT IN ('E'),
    Y AS type NOT IN ('F')
)
