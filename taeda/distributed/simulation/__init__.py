"""Time and memory of a training step on many machines, from plans on device meta and rates of processors and links."""

from .layers import Layer, Traffic
from .measure import measure_device, measure_network
from .network import Device, Link, Network
from .program import spend
from .result import Simulation
from .step import Step, simulate

__all__ = [
    "Device", "Layer", "Link", "Network", "Simulation", "Step", "Traffic", "measure_device", "measure_network",
    "simulate", "spend",
]  # fmt: skip
