"""Serves the progress of a job on `/metrics` for Prometheus; needs the package prometheus-client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from nestream.job.progress import Progress, State
from nestream.model.extras import needs
from nestream.model.wording import reason

COUNTERS = {
    "events": "Events read, including those that were left out",
    "late": "Events left out because they are behind the watermark",
    "malformed": "Rows and events that cannot be used",
    "future": "Events set aside because they are too far ahead of the clock",
}
GAUGES = {
    "lag_seconds": "Seconds from the watermark to the last batch of events",
    "batch_seconds": "Seconds that the last batch of events took",
    "busy": "Share of the time spent on batches and checkpoints; at 1 the job cannot keep up",
    "checkpoint_seconds": "Seconds that the last checkpoint took",
    "state_bytes": "Size of the state",
    "state_rows": "Events held",
    "rate": "Events per second",
    "rules_version": "Version of the rules",
}


BY_RULE: dict[str, tuple[str, Callable[[Progress], dict[str, Any]]]] = {
    "seconds": ("Seconds spent looking for matches of a rule", lambda one: dict(one.seconds_by_rule)),
    "version": ("Version of a running rule", lambda one: dict(one.rules)),
    "refused": ("1 for a rule that does not run", lambda one: dict.fromkeys(one.refused, 1)),
}


class MetricsError(OSError):
    """Metrics that cannot be served: what is wrong, and what to do."""


class Metrics:
    """Collects the progress of a job whenever Prometheus asks."""

    def __init__(self, progress: Callable[[], Progress]) -> None:
        self._progress = progress

    def collect(self) -> Iterator[Any]:
        """The metrics as they are now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        progress = self._progress()
        now = progress.state_now()
        for name, told in COUNTERS.items():
            yield CounterMetricFamily(f"nestream_{name}", told, value=getattr(progress, name))
        matches = CounterMetricFamily("nestream_matches", "Matches written", labels=["rule"])
        for rule, number in list(progress.by_rule.items()) or [("", progress.matches)]:
            matches.add_metric([rule], number)
        yield matches
        for name, (told, shown) in BY_RULE.items():
            kind = CounterMetricFamily if name == "seconds" else GaugeMetricFamily
            family = kind(f"nestream_rule_{name}", told, labels=["rule"])
            for rule, value in shown(progress).items():
                family.add_metric([rule], value)
            yield family
        state = GaugeMetricFamily("nestream_job_state", "1 for the state of the job", labels=["state"])
        for one in State:
            state.add_metric([one.value], float(one is now))
        yield state
        values = {**vars(progress), "lag_seconds": progress.lag, "rules_version": progress.version}
        for name, told in GAUGES.items():
            if values[name] is not None:
                yield GaugeMetricFamily(f"nestream_{name}", told, value=values[name])
        if progress.at is not None:
            age = (datetime.now(UTC) - progress.at).total_seconds()
            yield GaugeMetricFamily(
                "nestream_last_batch_age_seconds", "Seconds since the last batch of events", value=age
            )
        if isinstance(progress.watermark, datetime):
            moment = progress.watermark
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            yield GaugeMetricFamily(
                "nestream_watermark_seconds", "The watermark, in seconds since 1970", value=moment.timestamp()
            )


def serve_metrics(address: str, progress: Callable[[], Progress]) -> tuple[int, Callable[[], None]]:
    """Serve the metrics on `PORT` (of this machine) or `HOST:PORT`; return the port, and how to stop."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"{address!r} is not an address; write PORT or HOST:PORT")
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ModuleNotFoundError:
        raise MetricsError(needs("--metrics", "prometheus-client", "metrics")) from None
    registry = CollectorRegistry()
    registry.register(Metrics(progress))
    try:
        server, thread = start_http_server(int(port), addr=host or "127.0.0.1", registry=registry)
    except OSError as error:
        raise MetricsError(
            f"cannot serve metrics on {'' if host else 'port '}{address}: {reason(error)}\n"
            "  hint: name another port with --metrics"
        ) from error

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return int(server.server_port), stop
