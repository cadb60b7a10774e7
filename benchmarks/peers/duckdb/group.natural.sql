-- SEQ(A a, B{3,} b, C c), joined on id: all triples, counted by their ends.
SELECT a.ts AS ts_a, c.ts AS ts_c
FROM events a
JOIN events c ON c.id = a.id AND c.ts > a.ts AND c.ts <= a.ts + {window}
JOIN events b ON b.id = a.id AND b.ts > a.ts AND b.ts < c.ts
WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C'
GROUP BY a.ts, c.ts
HAVING count(*) >= 3
