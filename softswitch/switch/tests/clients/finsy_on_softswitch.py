"""A pytest plugin: finsy's demo networks run here, on softswitch, and not in its container."""

from pathlib import Path

from finsy.test import demonet

demonet._IMAGE_P4SWITCH_PY = Path(__file__).parent / "demonet_switch.py"
