-- SEQ(A a, B b), joined on id, as one would write it first.
SELECT a.id AS id, a.ts AS a_ts, b.ts AS b_ts
FROM events a
JOIN events b ON b.type = 'B' AND b.id = a.id AND b.ts > a.ts AND b.ts <= a.ts + {window}
WHERE a.type = 'A'
