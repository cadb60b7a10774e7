"""The console: a web application that watches any job, and runs, explains and questions queries."""

from nestream.console.job import Job, JobError, Rule
from nestream.console.serve import serve

__all__ = ["Job", "JobError", "Rule", "serve"]
