"""From the logical plan to the engine's program: leaves, blocks, keys, and negations as bounds."""
