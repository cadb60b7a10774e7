"""An embedded job: a source, a stream and a sink in this process, with a checkpoint to continue from."""

from nestream.job.checkpoint import Checkpoint, CheckpointError
from nestream.job.description import JobError
from nestream.job.folder import JobFolder
from nestream.job.job import Job
from nestream.job.live_rules import Change, LiveRules
from nestream.job.progress import Progress, State
from nestream.job.rule_folder import RuleFolder
from nestream.job.rule_stores import RuleStore, is_rules, open_rules
from nestream.job.rules import RulesError, RuleSet, RuleSource, Version, check_name
from nestream.job.unseen import Unseen

__all__ = [
    "Change",
    "Checkpoint",
    "CheckpointError",
    "Job",
    "JobError",
    "JobFolder",
    "LiveRules",
    "Progress",
    "RuleFolder",
    "RuleSet",
    "RuleSource",
    "RuleStore",
    "RulesError",
    "State",
    "Unseen",
    "Version",
    "check_name",
    "is_rules",
    "open_rules",
]
