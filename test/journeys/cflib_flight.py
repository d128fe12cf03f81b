"""A script of cflib, as its users write them: parameters, a log, a flight, a landing.

python cflib_flight.py URI FOLDER
"""

from __future__ import annotations

import sys
import time

import cflib.crtp
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.syncCrazyflie import SyncCrazyflie
from cflib.crazyflie.syncLogger import SyncLogger


def main(uri: str, folder: str) -> None:
    """Fly."""
    cflib.crtp.init_drivers()
    with SyncCrazyflie(uri, cf=Crazyflie(rw_cache=folder)) as scf:
        scf.wait_for_params()
        assert scf.cf.param.get_value("stabilizer.controller") in ("1", "2", "3", "4")
        config = LogConfig("place", period_in_ms=100)
        config.add_variable("stateEstimate.z", "float")
        commander = scf.cf.high_level_commander
        commander.takeoff(0.5, 1.0)
        with SyncLogger(scf, config) as log:
            for _, (_, values, _) in zip(range(10), log):
                height = values["stateEstimate.z"]
        print(f"at {height:.2f} m", flush=True)
        commander.land(0.0, 1.0)
        time.sleep(1.0)
        commander.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
