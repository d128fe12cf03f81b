"""The symbols of the models as CasADi expressions."""

import casadi as cs

from crazyflow_ros.compat.crazyflow.dynamics.utils.rotation import cs_quat2matrix

px, py, pz = (cs.MX.sym(name) for name in ("px", "py", "pz"))
pos = cs.vertcat(px, py, pz)
"""m"""
qw, qx, qy, qz = (cs.MX.sym(name) for name in ("qw", "qx", "qy", "qz"))
quat = cs.vertcat(qx, qy, qz, qw)
rot = cs_quat2matrix(quat)
"""Rotation matrix, body to world."""
vx, vy, vz = (cs.MX.sym(name) for name in ("vx", "vy", "vz"))
vel = cs.vertcat(vx, vy, vz)
"""m/s"""
wx, wy, wz = (cs.MX.sym(name) for name in ("wx", "wy", "wz"))
ang_vel = cs.vertcat(wx, wy, wz)
"""rad/s, body frame"""
w1, w2, w3, w4 = (cs.MX.sym(f"w{i}") for i in range(1, 5))
rotor_vel = cs.vertcat(w1, w2, w3, w4)
"""RPM, or the thrust [N] four times"""
dfx, dfy, dfz = (cs.MX.sym(name) for name in ("dfx", "dfy", "dfz"))
dist_f = cs.vertcat(dfx, dfy, dfz)
"""N, world frame"""
dtx, dty, dtz = (cs.MX.sym(name) for name in ("dtx", "dty", "dtz"))
dist_t = cs.vertcat(dtx, dty, dtz)
"""N m, world frame"""
cmd_w1, cmd_w2, cmd_w3, cmd_w4 = (cs.MX.sym(f"cmd_w{i}") for i in range(1, 5))
cmd_rotor_vel = cs.vertcat(cmd_w1, cmd_w2, cmd_w3, cmd_w4)
"""RPM"""
cmd_roll, cmd_pitch, cmd_yaw, cmd_thrust = (
    cs.MX.sym(f"cmd_{name}") for name in ("roll", "pitch", "yaw", "thrust")
)
cmd_rpyt = cs.vertcat(cmd_roll, cmd_pitch, cmd_yaw, cmd_thrust)
"""rad and N"""
roll, pitch, yaw = (cs.MX.sym(name) for name in ("roll", "pitch", "yaw"))
rpy = cs.vertcat(roll, pitch, yaw)
"""rad"""
droll, dpitch, dyaw = (cs.MX.sym(name) for name in ("droll", "dpitch", "dyaw"))
drpy = cs.vertcat(droll, dpitch, dyaw)
"""rad/s"""
