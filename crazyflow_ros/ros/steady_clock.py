"""The clock of timers: rclpy's own follow the system's, and stand still when that is set back."""

from rclpy.clock import Clock
from rclpy.clock_type import ClockType

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
