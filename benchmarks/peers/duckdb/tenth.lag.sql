-- SEQ(A{9,} f, A last), joined on id: the ninth before is within the window.
SELECT ts AS ts_last FROM events WHERE type = 'A'
QUALIFY ts - lag(ts, 9) OVER (PARTITION BY id ORDER BY ts) <= {window}
