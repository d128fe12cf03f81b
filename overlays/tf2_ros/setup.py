from setuptools import setup

setup(
    name="crazyflow-ros-tf2-ros",  # not that of the original, which may come to the package index
    version="0.1.0",
    packages=["tf2_ros"],
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/tf2_ros"]),
        ("share/tf2_ros", ["package.xml"]),
    ],
    maintainer="crazyflow_ros maintainers",
    maintainer_email="maintainers@example.org",
    description="Transform buffer and listener under the names of tf2_ros.",
    license="Apache-2.0",
)
