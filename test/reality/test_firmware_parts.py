"""The program that judges the firmware's parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from crazyflow_ros.reality.__main__ import main
from crazyflow_ros.reality.battery_errors import BatteryErrors
from crazyflow_ros.reality.firmware_parts import PartErrors, table


def test_a_flight_has_a_row_with_what_was_judged() -> None:
    battery = BatteryErrors("flight", 4.1, 0.124, 0.25, 0.0387)
    lines = table([PartErrors("flight", None, None, battery, ("estimate was not logged",))])
    cells = [cell.strip() for cell in lines.splitlines()[-1].strip("|").split("|")]
    assert cells == ["flight", *[""] * 6, "124", "39", "0.25"]


def test_reasons_and_unreadable_files_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "Real_path_7.csv"
    rows = "0,0,1,4.05\n" * 3
    path.write_text("x_estimate,y_estimate,z_estimate,battery_voltage\n" + rows)
    assert main([str(path), "--tables", "parts"]) == 0
    told = capsys.readouterr().out
    assert "| Real_path_7 " in told
    for reason in (
        "Real_path_7: pwm was not logged",
        "estimate was not logged",
        "never drops by 0.1 V",
    ):
        assert reason in told
    assert main([str(tmp_path / "none.csv"), "--tables", "parts"]) == 1
    assert "none.csv" in capsys.readouterr().err
