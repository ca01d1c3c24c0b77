"""Curriculum and optimization (§6): packed rollouts, staged manifests, bound checkpoints."""
