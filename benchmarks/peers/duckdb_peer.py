"""DuckDB: runs `duckdb/QUERY.FORMULATION.sql` over events in a table of its own, result as an Arrow table.

The type is an ENUM, rows may come in any order; loading the events is not timed.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from benchmarks.peers import common

NEVER = "-never"
"""A query whose name ends so is the one without it, its last event of a type that does not come."""


def main() -> None:
    """Load the events, then run the query."""
    task = common.task(__doc__)
    connection = duckdb.connect()
    connection.execute(f"SET threads = {task.threads}")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(
        "CREATE VIEW file AS FROM read_parquet('{}')".format(str(task.events).replace("'", "''"))
    )
    connection.execute(
        "CREATE TYPE kind AS ENUM (SELECT DISTINCT type::VARCHAR FROM file UNION SELECT 'Never' ORDER BY 1)"
    )
    connection.execute(
        "CREATE TABLE events AS "
        "SELECT ts, type::VARCHAR::kind AS type, id, attr1, attr2 FROM file ORDER BY ts"
    )
    folder = Path(__file__).parent / "duckdb"
    name = task.query.removesuffix(NEVER)
    text = (folder / f"{name}.{task.formulation}.sql").read_text(encoding="utf-8")
    text = text.replace("{window}", str(task.window))
    if name != task.query:
        text = text.replace("'F'", "'Never'")
    common.answer(lambda: connection.sql(text).to_arrow_table())


if __name__ == "__main__":
    main()
