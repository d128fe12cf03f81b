"""Lets an exception leave the coroutine of a service that an executor of rclpy runs.

    python raising_service.py EventsExecutor | SingleThreadedExecutor

Needs nothing but rclpy and std_srvs. With the EventsExecutor of rclpy 9.1.2 (Kilted) it ends with a
segmentation fault instead of the exception (https://github.com/ros2/rclpy/issues/1641).
"""

import sys

import rclpy
import rclpy.executors
import rclpy.experimental
from std_srvs.srv import Empty


async def fail(request: Empty.Request, response: Empty.Response) -> Empty.Response:
    raise ValueError("refused")


rclpy.init()
node = rclpy.create_node("node")
node.create_service(Empty, "fail", fail)
client = node.create_client(Empty, "fail")
client.wait_for_service()
kind = sys.argv[1]
executor = (getattr(rclpy.executors, kind, None) or getattr(rclpy.experimental, kind))()
executor.add_node(node)
try:
    executor.spin_until_future_complete(client.call_async(Empty.Request()), 10.0)
except ValueError as error:
    print("raised:", error)
