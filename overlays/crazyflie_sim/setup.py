from setuptools import setup

setup(
    name="crazyflie_sim",
    version="0.1.0",
    packages=["crazyflie_sim"],
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/crazyflie_sim"]),
        ("share/crazyflie_sim", ["package.xml"]),
    ],
    maintainer="crazyflow_ros maintainers",
    maintainer_email="maintainers@example.org",
    description="The simulator of crazyflow_ros under the name of crazyswarm2's own.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": ["crazyflie_server = crazyflow_ros.__main__:crazyflie_server"]
    },
)
