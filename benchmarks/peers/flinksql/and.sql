-- One match for each start: the same as all matches only where a type comes once in a key and window.
-- Neither alternation nor PERMUTE: every order is a query of its own.
SELECT ts_a, ts_b, ts_c FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES A.ts AS ts_a, B.ts AS ts_b, C.ts AS ts_c
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
UNION ALL
SELECT ts_a, ts_b, ts_c FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES A.ts AS ts_a, C.ts AS ts_c, B.ts AS ts_b
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A X* C Y* B) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE
    A AS type = 'A',
    C AS type = 'C',
    B AS type = 'B',
    X AS type NOT IN ('C'),
    Y AS type NOT IN ('B')
)
UNION ALL
SELECT ts_a, ts_b, ts_c FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES B.ts AS ts_b, A.ts AS ts_a, C.ts AS ts_c
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (B X* A Y* C) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE
    B AS type = 'B',
    A AS type = 'A',
    C AS type = 'C',
    X AS type NOT IN ('A'),
    Y AS type NOT IN ('C')
)
UNION ALL
SELECT ts_a, ts_b, ts_c FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES B.ts AS ts_b, C.ts AS ts_c, A.ts AS ts_a
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (B X* C Y* A) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE
    B AS type = 'B',
    C AS type = 'C',
    A AS type = 'A',
    X AS type NOT IN ('C'),
    Y AS type NOT IN ('A')
)
UNION ALL
SELECT ts_a, ts_b, ts_c FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES C.ts AS ts_c, A.ts AS ts_a, B.ts AS ts_b
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (C X* A Y* B) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE
    C AS type = 'C',
    A AS type = 'A',
    B AS type = 'B',
    X AS type NOT IN ('A'),
    Y AS type NOT IN ('B')
)
UNION ALL
SELECT ts_a, ts_b, ts_c FROM events MATCH_RECOGNIZE (
  PARTITION BY id
  ORDER BY rowtime
  MEASURES C.ts AS ts_c, B.ts AS ts_b, A.ts AS ts_a
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (C X* B Y* A) WITHIN INTERVAL '{seconds}' SECOND(6, 3)
  DEFINE
    C AS type = 'C',
    B AS type = 'B',
    A AS type = 'A',
    X AS type NOT IN ('B'),
    Y AS type NOT IN ('A')
)
