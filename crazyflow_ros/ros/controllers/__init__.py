"""The stock ros2_control plugins that use topics."""
