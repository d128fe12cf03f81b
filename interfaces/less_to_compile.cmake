# Included in each message package, to compile less.

# Python and rmw_fastrtps_cpp need the code for C, introspection included: rmw_fastrtps_cpp registers the
# types with it, and without it writes ten lines of errors for each publisher, subscription and service.
# The code for C++ takes as long to compile as all of that, and among the wheels there is no rclcpp.
find_package(rosidl_default_generators REQUIRED)
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "cpp")

# A unity build, because most of the time is spent on the same headers. It excludes the C sources, whose
# static names collide.
cmake_language(DEFER CALL set_target_properties
  ${PROJECT_NAME}__rosidl_typesupport_c
  ${PROJECT_NAME}__rosidl_typesupport_fastrtps_c
  PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
