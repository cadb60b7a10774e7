"""The parts of the composer: strategies, planning, explaining, and the way to Spark."""
