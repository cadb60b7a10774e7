"""The progress of a job on /metrics."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from urllib.request import urlopen

import pytest

from nestream.job import Progress, State
from nestream.job.metrics import MetricsError, serve_metrics


def test_prometheus_reads_the_progress_as_it_is_now() -> None:
    pytest.importorskip("prometheus_client")
    progress = Progress(state=State.RUNNING, events=7, late=1, by_rule={"dirty": 2, "used": 3})
    progress.version, progress.rules, progress.refused = 4, {"dirty": 1, "used": 4}, {"bad": "no query"}
    progress.seconds_by_rule = {"dirty": 0.25, "used": 0.5}
    progress.at = progress.watermark = datetime(2026, 1, 5, 8, tzinfo=UTC)
    port, stop = serve_metrics("0", lambda: progress)
    try:
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        assert "nestream_events_total 7.0" in lines
        assert 'nestream_matches_total{rule="used"} 3.0' in lines
        assert 'nestream_job_state{state="running"} 1.0' in lines
        assert 'nestream_job_state{state="failed"} 0.0' in lines
        [told] = [line for line in lines if line.startswith("nestream_watermark_seconds ")]
        assert float(told.split()[1]) == progress.at.timestamp()
        assert 'nestream_rule_seconds_total{rule="used"} 0.5' in lines
        assert 'nestream_rule_version{rule="used"} 4.0' in lines
        assert 'nestream_rule_refused{rule="bad"} 1.0' in lines
        assert "nestream_rules_version 4.0" in lines
        progress.events = 8
        progress.looked = datetime(2026, 1, 5, 8, tzinfo=UTC)
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        assert "nestream_events_total 8.0" in lines
        assert 'nestream_job_state{state="stalled"} 1.0' in lines
    finally:
        stop()


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MetricsError, match="pip install"):
        serve_metrics("0", Progress)
    with pytest.raises(ValueError, match="HOST:PORT"):
        serve_metrics("here", Progress)
