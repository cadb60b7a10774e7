"""An embedded job: a source, a stream and a sink in this process, with a checkpoint to go on from."""

from nestream.job.checkpoint import Checkpoint, CheckpointError
from nestream.job.job import Job
from nestream.job.progress import Progress, State

__all__ = ["Checkpoint", "CheckpointError", "Job", "Progress", "State"]
