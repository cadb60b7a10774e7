"""Opens a store of rules by name: a folder, or a Kafka topic."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

from nestream.job.rule_folder import RuleFolder
from nestream.model.kafka import is_kafka

if TYPE_CHECKING:
    from nestream.job.rule_topic import RuleTopic

RuleStore: TypeAlias = "RuleFolder | RuleTopic"
"""Where rules are kept, and changed."""


def is_rules(place: str) -> bool:
    """Whether a place holds rules, and not one query."""
    return is_kafka(place) or os.path.isdir(place)


def open_rules(place: str, *, noted: bool = False) -> RuleStore:
    """The rules of a place. With `noted`, the rules that a job begins with are recorded."""
    if is_kafka(place):
        from nestream.job.rule_topic import RuleTopic  # loaded only by those who use Kafka

        return RuleTopic(place)
    return RuleFolder(place, noted=noted)
