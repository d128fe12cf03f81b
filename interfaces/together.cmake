# Compiles the C++ sources of a message package as a unity build, because most of the time is spent on
# the same headers. It excludes the introspection sources, which depend on the order of templates, and
# the C sources, whose static names collide.
cmake_language(DEFER CALL set_target_properties
  ${PROJECT_NAME}__rosidl_typesupport_c
  ${PROJECT_NAME}__rosidl_typesupport_cpp
  ${PROJECT_NAME}__rosidl_typesupport_fastrtps_c
  ${PROJECT_NAME}__rosidl_typesupport_fastrtps_cpp
  PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
