"""cflib beside the Lighthouse and Loco decks: memories, parameters, log variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crazyflie_helpers import Crazyflies, asked, connected, crazyflies, free_port, logged, until

from crazyflow_ros.crazyflie import LinkConfig
from crazyflow_ros.crazyflie.beacon_memory import LighthouseMemory
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.estimation.base_stations import USUAL_STATIONS
from crazyflow_ros.estimation.beacons import columns

pytest.importorskip("cflib", reason="cflib is not installed")

import cflib.crtp
from cflib.crazyflie.mem import LighthouseMemHelper, MemoryElement

T = 60.0  # s
ANCHORS = ((3.0, 3.0, 2.0), (-3.0, 3.0, 0.2), (-3.0, -3.0, 2.0), (3.0, -3.0, 0.2))
SOURCES = Positioning(
    flow=False, range=False, external=True, stations=USUAL_STATIONS, anchors=ANCHORS,
    ranging="tdoa2",
)  # fmt: skip


@pytest.fixture(scope="module")
def served() -> Iterator[Crazyflies]:
    cflib.crtp.init_drivers()
    link = LinkConfig(port=free_port(1), decks=("bcLighthouse4", "bcLoco"))
    with crazyflies(link=link, estimator="kalman", positioning=SOURCES) as found:
        yield found


@pytest.fixture
def cf(served: Crazyflies, tmp_path: Path) -> Iterator[Any]:
    served.physics.state.reset().result(T)
    with connected(served.uris[0], tmp_path) as cf:
        yield cf


def read(ask: Any) -> Any:
    found: list[Any] = []
    ask(found.append)
    until(lambda: found, "an answer of the memory")
    return found[0]


def known(served: Crazyflies) -> np.ndarray:
    engine = served.physics.simulation.engine
    memory = engine.world.numbers["estimate.beacons"][engine.slots["cf0"]]
    return np.array(memory[columns(SOURCES)["known"]])


def test_the_log_says_which_stations_and_anchors_are_received(cf: Any) -> None:
    group = "lighthouse"
    names = [f"{group}.{name}" for name in ("bsReceive", "bsActive", "bsGeoVal", "bsCalVal")]
    until(lambda: logged(cf, f"{group}.status")[f"{group}.status"] == 2, "status 2")
    assert list(logged(cf, *names).values()) == [3, 3, 3, 3]
    found = logged(cf, "ranging.state", "loco.mode", "tdoa2.d0-1", "tdoa2.cc0")
    assert found["ranging.state"] == 15 and found["loco.mode"] == 2 and found["tdoa2.cc0"] == 1
    lengths = np.linalg.norm(np.array(ANCHORS), axis=1)
    assert abs(found["tdoa2.d0-1"] - (lengths[1] - lengths[0])) < 0.8
    assert int(cf.param.get_value("deck.bcLoco")) == int(cf.param.get_value("deck.bcDWM1000")) == 1


def test_geometry_and_calibration_are_read_written_and_stored(served: Crazyflies, cf: Any) -> None:
    helper = LighthouseMemHelper(cf)
    geometries, calibrations = read(helper.read_all_geos), read(helper.read_all_calibs)
    for station in USUAL_STATIONS:
        own, sweeps = geometries[station.channel], calibrations[station.channel]
        np.testing.assert_allclose(own.origin, station.origin, rtol=1e-6)
        np.testing.assert_allclose(own.rotation_matrix, station.rotation, atol=1e-6)
        assert own.valid and sweeps.valid and sweeps.uid == station.uid
        assert sweeps.sweeps[1].tilt == pytest.approx(station.sweeps[1].tilt)
    assert not geometries[2].valid
    before = known(served)
    geometries[0].origin = [-2.4, -2.5, 2.5]
    assert read(lambda done: helper.write_geos({0: geometries[0]}, done))
    until(lambda: known(served)[0] == pytest.approx(-2.4), "the new origin")
    assert np.abs(known(served) - before)[1:].max() < 1e-6
    served.physics.state.reset().result(T)  # what was not stored is gone
    until(lambda: known(served)[0] == pytest.approx(-2.5), "the old origin")
    assert read(helper.read_all_geos)[0].origin[0] == pytest.approx(-2.5)
    assert read(lambda done: helper.write_geos({0: geometries[0]}, done))
    answers: list[Any] = []
    cf.loc.receivedLocationPacket.add_callback(answers.append)
    cf.loc.send_lh_persist_data_packet([0], [])
    until(lambda: answers, "an answer about the storage")
    assert answers[0].data is True
    served.physics.state.reset().result(T)
    until(lambda: known(served)[0] == pytest.approx(-2.4), "the stored origin")
    geometries[0].origin = [-2.5, -2.5, 2.5]
    assert read(lambda done: helper.write_geos({0: geometries[0]}, done))
    cf.loc.send_lh_persist_data_packet([0], [])
    until(lambda: len(answers) > 1, "another answer about the storage")


def test_a_station_without_valid_geometry_is_received_but_not_used(
    served: Crazyflies, cf: Any
) -> None:
    helper = LighthouseMemHelper(cf)
    geometries = read(helper.read_all_geos)
    for channel in (0, 1):
        geometries[channel].valid = False
    assert read(lambda done: helper.write_geos({i: geometries[i] for i in (0, 1)}, done))
    until(lambda: logged(cf, "lighthouse.status")["lighthouse.status"] == 1, "status 1")
    found = logged(cf, "lighthouse.bsReceive", "lighthouse.bsActive", "lighthouse.bsGeoVal")
    assert list(found.values()) == [3, 0, 0]


def test_places_of_anchors_are_in_the_memory(cf: Any) -> None:
    (memory,) = cf.mem.get_mems(MemoryElement.TYPE_LOCO2)
    read(memory.update_id_list)
    read(memory.update_active_id_list)
    read(memory.update_data)
    assert memory.anchor_ids == memory.active_anchor_ids == [0, 1, 2, 3]
    for i, anchor in enumerate(ANCHORS):
        np.testing.assert_allclose(memory.anchor_data[i].position, anchor, rtol=1e-6)


def test_beams_cross_where_the_drone_is(served: Crazyflies, cf: Any) -> None:
    cf.param.set_value("lighthouse.method", "0")
    until(lambda: logged(cf, "lighthouse.delta")["lighthouse.delta"] > 0, "beams that cross")
    place = list(logged(cf, "lighthouse.x", "lighthouse.y", "lighthouse.z").values())
    np.testing.assert_allclose(place, served.physics.snapshot.pos[0], atol=0.1)
    raw = logged(cf, "lighthouse.rawAngle0xlh2", "lighthouse.angle0x_0lh2", "lighthouse.angle0x")
    assert 1e-3 < abs(raw["lighthouse.rawAngle0xlh2"] - raw["lighthouse.angle0x_0lh2"]) < 0.1
    assert asked(cf.param.get_default_value, "lighthouse.method") == 1
    assert not [line for line in served.log if "no effect" in line and "method" in line]


def test_data_are_invalid_until_their_last_byte_is_written() -> None:
    told: list[np.ndarray] = []
    memory = LighthouseMemory(USUAL_STATIONS, told.append)
    data = memory.read(0, 49)
    assert data is not None and memory.valid == (3, 3)
    assert memory.write(0, data[:25]) and memory.valid == (2, 3) and told[-1][26] == 0
    assert memory.write(25, data[25:]) and memory.valid == (3, 3) and told[-1][26] == 1
    assert memory.read(40, 20) is None and not memory.write(0x1030, bytes(20))
