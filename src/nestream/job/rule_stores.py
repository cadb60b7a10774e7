"""Where rules are kept by what it is called: a folder, or a Kafka topic."""

from __future__ import annotations

import os

from nestream.job.rule_folder import RuleFolder
from nestream.job.rules import RuleStore
from nestream.model.kafka import is_kafka


def is_rules(place: str) -> bool:
    """Whether a place holds rules, and not one query."""
    return is_kafka(place) or os.path.isdir(place)


def open_rules(place: str, *, noted: bool = False) -> RuleStore:
    """The rules of a place. A job that will be started again has those that it begins with `noted`."""
    if is_kafka(place):
        from nestream.job.rule_topic import RuleTopic  # only those who use Kafka load it

        return RuleTopic(place)
    return RuleFolder(place, noted=noted)
