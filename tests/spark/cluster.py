"""Starting real Spark processes on this machine: a master with workers, and a Spark Connect server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
PATIENCE = 300.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def environment(folder: Path, **changes: str) -> dict[str, str]:
    """Spark's own settings away, this interpreter for the workers, all on the loopback address."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
        **changes,
    }


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until something listens on the port."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, "the process ended"
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens on port {port}")


@dataclass
class Processes:
    """Processes that are ended together, with all that they started."""

    folder: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env=environment(self.folder),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """`kill -9`, to it and to what it started: executors and their Python workers die with a worker."""
        for pid in (*_descendants(process.pid), process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                self.kill(process)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found: list[int] = []
    pending = [pid]
    while pending:
        inner = children.get(pending.pop(), [])
        found += inner
        pending += inner
    return found


@dataclass
class Cluster:
    """A standalone master with workers of one core each."""

    url: str
    processes: Processes
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> None:
        """Start one more."""
        number = len(self.workers)
        self.workers.append(
            self.processes.start(
                f"worker{number}",
                str(HOME / "bin" / "spark-class"),
                "org.apache.spark.deploy.worker.Worker",
                *("--host", LOOPBACK, "--webui-port", str(free_port()), "--cores", "1", "--memory", "1g"),
                *("--work-dir", str(self.processes.folder / f"work{number}"), self.url),
            )
        )

    def kill_worker(self, number: int) -> None:
        self.processes.kill(self.workers[number])


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A running cluster."""
    processes = Processes(folder)
    program = str(HOME / "bin" / "spark-class")
    port = free_port()
    try:
        address = ["--host", LOOPBACK, "--port", str(port), "--webui-port", str(free_port())]
        master = processes.start("master", program, "org.apache.spark.deploy.master.Master", *address)
        wait_for(port, master)
        cluster = Cluster(f"spark://{LOOPBACK}:{port}", processes)
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        processes.end()


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A running Spark Connect server; its address for `SparkSession.builder.remote`."""
    processes = Processes(folder)
    port = free_port()
    try:
        server = processes.start(
            "connect",
            str(HOME / "sbin" / "start-connect-server.sh"),
            *("--master", "local[2]"),
            *("--conf", f"spark.connect.grpc.binding.port={port}"),
            *("--conf", f"spark.connect.grpc.binding.address={LOOPBACK}"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=3"),
        )
        wait_for(port, server)
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        processes.end()
