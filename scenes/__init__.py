"""Scenes that several tests and benchmarks use, built through the public interface of coulomb only."""
