# Included in each message package, to compile less.

# Python, rmw_fastrtps_cpp and introspection need the code for C. The code for C++ takes as long to
# compile as all of that, and has no user: there is no rclcpp among the wheels.
find_package(rosidl_default_generators REQUIRED)
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "cpp")

# A unity build, because most of the time is spent on the same headers. It excludes the C sources, whose
# static names collide.
cmake_language(DEFER CALL set_target_properties
  ${PROJECT_NAME}__rosidl_typesupport_c
  ${PROJECT_NAME}__rosidl_typesupport_fastrtps_c
  PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
