-- SEQ(A a, B b, C c, D d, E e, F f), joined on id: the self-join as one would write it first.
SELECT a.ts AS ts_a, a.type AS type_a, a.id AS id_a, a.attr1 AS attr1_a, a.attr2 AS attr2_a,
       b.ts AS ts_b, b.type AS type_b, b.id AS id_b, b.attr1 AS attr1_b, b.attr2 AS attr2_b,
       c.ts AS ts_c, c.type AS type_c, c.id AS id_c, c.attr1 AS attr1_c, c.attr2 AS attr2_c,
       d.ts AS ts_d, d.type AS type_d, d.id AS id_d, d.attr1 AS attr1_d, d.attr2 AS attr2_d,
       e.ts AS ts_e, e.type AS type_e, e.id AS id_e, e.attr1 AS attr1_e, e.attr2 AS attr2_e,
       f.ts AS ts_f, f.type AS type_f, f.id AS id_f, f.attr1 AS attr1_f, f.attr2 AS attr2_f
FROM events a
JOIN events b ON b.id = a.id AND b.ts > a.ts AND b.ts <= a.ts + {window}
JOIN events c ON c.id = a.id AND c.ts > b.ts AND c.ts <= a.ts + {window}
JOIN events d ON d.id = a.id AND d.ts > c.ts AND d.ts <= a.ts + {window}
JOIN events e ON e.id = a.id AND e.ts > d.ts AND e.ts <= a.ts + {window}
JOIN events f ON f.id = a.id AND f.ts > e.ts AND f.ts <= a.ts + {window}
WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C' AND d.type = 'D' AND e.type = 'E' AND f.type = 'F'
