-- SEQ(A a, B b, !D d, C c), joined on id, as one would write it first.
SELECT a.id AS id, a.ts AS a_ts, b.ts AS b_ts, c.ts AS c_ts
FROM events a
JOIN events b ON b.type = 'B' AND b.id = a.id AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN events c ON c.type = 'C' AND c.id = a.id AND c.ts > b.ts AND c.ts <= a.ts + {window}
WHERE a.type = 'A' AND NOT EXISTS (
  SELECT 1 FROM events d WHERE d.type = 'D' AND d.id = b.id AND d.ts > b.ts AND d.ts < c.ts)
