"""Simulated labels and pair comparisons with known truth."""

from annotruth.simulate.comparers import ComparisonSimulation, comparers
from annotruth.simulate.crowds import Simulation, crowd, gaussian

__all__ = ["ComparisonSimulation", "Simulation", "comparers", "crowd", "gaussian"]
