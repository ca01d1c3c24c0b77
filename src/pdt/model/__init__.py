"""The Parallel Decoder Transformer (§3): trunk, planner, lanes, Plan-KV, SNC, heads."""
