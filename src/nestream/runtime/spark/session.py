"""A Spark session for the command line, the tests and the benchmarks: quiet, on this machine, ready to match.

Users bring their own sessions; matching does not depend on this one.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from nestream.runtime.spark.columns import (
    arrow_schema,
    can_carry,
    event_fields,
    named,
    session_zone,
    spark_readable,
)

LEAST_JAVA = 17
REACHING = 10.0
"""The seconds to wait for a master to answer."""
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_NOISE = re.compile(
    r"^(WARNING: Using incubator modules|Using Spark's default log4j|Setting default log|To adjust logging"
    r"|(Starting )?Streaming TransformWithStateInPandas Python worker|$)"
)


class SparkUnavailableError(OSError):
    """Spark cannot be started here."""


def local_session(
    master: str = "local[*]", name: str = "nestream", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """The running session, or a new one on the master.

    Python workers run this interpreter, so that they find what is installed here. `settings` are Spark's own
    and override the defaults here.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    check_java()
    check_master(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**_chosen(master), **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        with _without_noise():
            return builder.getOrCreate()
    except Exception as problem:  # from Java, in many guises
        packages = (settings or {}).get("spark.jars.packages")
        if packages is not None and "JAVA_GATEWAY_EXITED" in str(problem):
            raise SparkUnavailableError(
                f"Spark cannot be started on {master}: most likely it cannot fetch the package {packages}; "
                "its own report is above\n"
                "  hint: check the name and the network, or download the jars and name them with --jars"
            ) from None
        said = [line for line in str(problem).splitlines() if line.strip()]
        causes = [line.partition(": ")[2] for line in said if line.startswith((":", "Caused by"))]
        raise SparkUnavailableError(
            f"Spark cannot be started on {master}: {(causes or said or [type(problem).__name__])[0].strip()}"
        ) from None


def frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Convert an Arrow table to a DataFrame; times without a zone stay without one."""
    schema = pa.schema([pa.field(field.name, spark_readable(field.type)) for field in table.schema])
    return session.createDataFrame(table.cast(schema), from_arrow_schema(schema, prefer_timestamp_ntz=True))


def in_process(df: DataFrame) -> pa.Table:
    """The rows of a DataFrame as an Arrow table.

    Times are in the zone of its session; what Arrow cannot carry becomes text.
    """
    fields = [
        (field.name, can_carry(field) and field.dataType.typeName() != "variant")  # Spark loses its NULL
        for field in event_fields(df)
    ]
    carried = df.select(*(named(n) if can else named(n).cast("string").alias(n) for n, can in fields))
    return carried.toArrow().cast(arrow_schema(carried.schema, session_zone(df)))


def _chosen(master: str) -> dict[str, str]:
    quiet = f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": quiet,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # Hadoop starts a process to set the permissions of a file, and its checksums are files too.
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    }
    if is_on_this_machine(master):
        chosen["spark.driver.host"] = chosen["spark.driver.bindAddress"] = "127.0.0.1"
    if master.startswith("local"):
        chosen["spark.sql.shuffle.partitions"] = str(max(2 * cores(master), 4))
    return chosen


def is_on_this_machine(master: str) -> bool:
    """Whether a master is embedded here or listens on the loopback address."""
    return master.startswith("local") or re.match(r"spark://(127\.|localhost\b)", master) is not None


def cores(master: str) -> int:
    """How many tasks an embedded master runs at a time."""
    found = re.match(r"local\[(\d+|\*)", master)
    if found is None:
        return 1
    return os.cpu_count() or 1 if found[1] == "*" else int(found[1])


def check_master(master: str) -> None:
    """Report in one sentence that a master cannot be reached, before Spark tries for minutes."""
    if master.startswith(("local", "yarn")):
        return
    found = re.fullmatch(r"(?:spark|k8s)://(?:https?://)?(.+)", master)
    if found is None:
        raise SparkUnavailableError(
            f"{master!r} is not a Spark master: use local[*], spark://host:7077, yarn or k8s://https://host:443"
        )
    problems = []
    for address in found[1].split(","):
        host, _, port = address.strip("/").rpartition(":")
        if not host or not port.isdigit():
            raise SparkUnavailableError(f"{master!r} has no port: write spark://host:7077")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=REACHING):
                return
        except (OSError, OverflowError) as problem:
            problems.append(f"{address}: {getattr(problem, 'strerror', None) or problem}")
    raise SparkUnavailableError(
        f"the Spark master cannot be reached ({'; '.join(problems)}): start it, or use --master 'local[*]'"
    )


def check_java() -> None:
    """Report in one sentence what is missing if there is no Java that Spark can use."""
    version = java_version()
    if version is None:
        raise SparkUnavailableError(
            f"Spark needs Java {LEAST_JAVA} or later and none was found: install one (`scripts/setup --java` "
            "does in a checkout) or point JAVA_HOME to it."
        )
    if version < LEAST_JAVA:
        raise SparkUnavailableError(
            f"Spark needs Java {LEAST_JAVA} or later and this is Java {version}: install a later one or "
            "point JAVA_HOME to it."
        )


def java_version() -> int | None:
    """The major version of the Java that Spark would use; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if program is None:
        return None
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else None


@contextmanager
def _without_noise() -> Iterator[None]:
    """Start the Java process with an error output that drops its usual noise.

    The process keeps its output afterwards, so a thread passes the rest on to the original error output.
    """
    try:
        kept = os.dup(2)
    except OSError:  # there is no error output
        yield
        return
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)

    def forward() -> None:
        with os.fdopen(reading, "rb") as lines, os.fdopen(kept, "wb", buffering=0) as errors:
            for line in lines:
                if not _NOISE.search(line.decode(errors="replace")):
                    try:
                        errors.write(line)
                    except OSError:  # nobody reads it any more, and the process must not block
                        continue

    threading.Thread(target=forward, name="spark errors", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, 2)
