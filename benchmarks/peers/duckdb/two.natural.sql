-- SEQ(A a, B b), joined on id: the self-join as one would write it first.
SELECT a.ts AS ts_a, a.type AS type_a, a.id AS id_a, a.attr1 AS attr1_a, a.attr2 AS attr2_a,
       b.ts AS ts_b, b.type AS type_b, b.id AS id_b, b.attr1 AS attr1_b, b.attr2 AS attr2_b
FROM events a
JOIN events b ON b.id = a.id AND b.ts > a.ts AND b.ts <= a.ts + {window}
WHERE a.type = 'A' AND b.type = 'B'
