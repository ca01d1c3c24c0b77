"""Synchronized parallel generation (§3.6): one loop, a stream of events, interventions as edits."""
