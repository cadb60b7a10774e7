"""The hospital case study: a simulator with planted violations, the rules that find them, its job folder."""

from nestream.hospital.bundled import RULES
from nestream.hospital.floor import FLOOR
from nestream.hospital.scripts import Planted
from nestream.hospital.simulator import Moment, simulate

__all__ = ["FLOOR", "RULES", "Moment", "Planted", "simulate"]
