# Compiles the C++ sources of a message package together: most of the time goes into reading the
# same headers. Those of the introspection stay apart, for they count on an order of templates, and
# so do the C sources, which have static names in common.
cmake_language(DEFER CALL set_target_properties
  ${PROJECT_NAME}__rosidl_typesupport_c
  ${PROJECT_NAME}__rosidl_typesupport_cpp
  ${PROJECT_NAME}__rosidl_typesupport_fastrtps_c
  ${PROJECT_NAME}__rosidl_typesupport_fastrtps_cpp
  PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
