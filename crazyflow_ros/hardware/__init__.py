"""What ros2_control and RViz need to know about a drone."""
