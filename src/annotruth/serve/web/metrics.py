"""Metrics of the web server, in the format of Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import Scope

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0)
_GROUP_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)


class ServeMetrics:
    """Counters of requests and of ingestion, without ids of items or annotators.

    Examples
    --------
    >>> metrics = ServeMetrics()
    >>> metrics.labels.labels("accepted").inc(3)
    >>> b'annotruth_labels_total{outcome="accepted"} 3.0' in metrics.text()
    True
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "annotruth_requests", "Requests.", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "annotruth_request_seconds",
            "Time to answer a request.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.labels = Counter(
            "annotruth_labels",
            "Events that were received: accepted, or repeated and ignored.",
            ("outcome",),
            registry=self.registry,
        )
        self.commits = Histogram(
            "annotruth_commit_events",
            "Events per commit.",
            buckets=_GROUP_SIZES,
            registry=self.registry,
        )
        self.failed_commits = Counter(
            "annotruth_failed_commits", "Commits that failed.", registry=self.registry
        )
        self.waiting = Gauge(
            "annotruth_waiting_events", "Events that wait to be committed.", registry=self.registry
        )
        self.listeners = Gauge(
            "annotruth_listeners", "Open streams of live events.", registry=self.registry
        )

    def count_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request under its route's template, which has no ids in it."""
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.requests.labels(method, route, str(status)).inc()
        if route != _STREAM:
            self.seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        return generate_latest(self.registry)


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_STREAM = "/api/v1/projects/{project}/events"  # which takes as long as a page is open
