-- SEQ(A a, B b, C c), no key: range joins (IEJoin), as one would write them first.
SELECT a.ts AS ts_a, a.type AS type_a, a.id AS id_a, a.attr1 AS attr1_a, a.attr2 AS attr2_a,
       b.ts AS ts_b, b.type AS type_b, b.id AS id_b, b.attr1 AS attr1_b, b.attr2 AS attr2_b,
       c.ts AS ts_c, c.type AS type_c, c.id AS id_c, c.attr1 AS attr1_c, c.attr2 AS attr2_c
FROM events a
JOIN events b ON b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN events c ON c.ts > b.ts AND c.ts <= a.ts + {window}
WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C'
