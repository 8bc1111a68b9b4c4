"""Benchmarks of speed and memory: each compares measurements of the same run."""
