"""Selection of the contacts that a contact sensor reports."""

from __future__ import annotations

from types import ModuleType
from typing import Literal

from crazyflow_ros.sensors.backend import Array, Contacts

Reduction = Literal["none", "mindist", "maxforce", "netforce"]


def reduce_contacts(
    contacts: Contacts,
    primaries: Array,
    secondary: Array,
    reduce: Reduction,
    n_slots: int,
    xp: ModuleType,
) -> dict[str, Array]:
    """Choose and turn contacts as MuJoCo's contact sensors (`mjSENS_CONTACT`) do.

    Args:
        contacts: C contacts in each of B worlds.
        primaries: Which geoms belong to each of P primaries, shape (P, ngeom + 1), the last False.
        secondary: Which geoms belong to the secondary, shape (ngeom + 1,), the last False.
        reduce: See `ContactSensorCfg.reduce`.
        n_slots: S, contacts of a primary to report.
        xp: Module of the arrays.

    Returns:
        Fields of `ContactData`, shape (B, P * S) or (B, P * S, 3); without force and torque where
        the contacts have none.
    """
    contacts = _at_least(contacts, n_slots, xp)
    one, two = contacts.geoms[..., 0], contacts.geoms[..., 1]
    as_first = xp.moveaxis(primaries[:, one], 0, 1) & secondary[two][:, None]  # (B, P, C)
    as_second = xp.moveaxis(primaries[:, two], 0, 1) & secondary[one][:, None]
    matches = as_first | as_second
    sign = xp.where(as_first, 1.0, -1.0)
    found = matches.sum(axis=-1)
    if reduce == "netforce":
        fields = _net(contacts, xp.where(matches, sign, 0.0), xp)
        fields["found"] = found[..., None]
    else:
        fields = _chosen(contacts, matches, sign, reduce, n_slots, xp)
        fields["found"] = xp.where(fields.pop("taken"), found[..., None], 0)
    return {
        name: values.reshape(len(values), -1, *values.shape[3:]) for name, values in fields.items()
    }


def _chosen(
    contacts: Contacts,
    matches: Array,
    sign: Array,
    reduce: Reduction,
    n_slots: int,
    xp: ModuleType,
) -> dict[str, Array]:
    """Return the first contacts in the order of the reduction, seen from the primary."""
    if reduce == "mindist":
        key = contacts.dist[:, None]
    elif reduce == "maxforce":
        key = -xp.linalg.norm(contacts.force, axis=-1)[:, None]
    else:
        key = xp.zeros_like(contacts.dist)[:, None]
    order = xp.argsort(xp.where(matches, key, xp.inf), axis=-1, stable=True)[..., :n_slots]
    world = xp.arange(len(order))[:, None, None]
    taken = xp.take_along_axis(matches, order, axis=-1)
    sign = xp.take_along_axis(sign, order, axis=-1)[..., None]
    axes = contacts.axes[world, order]
    # Seen from the other side, normal and tangent are reversed: the axes turn about the third one,
    # and force and torque become the reactions.
    reaction = xp.concat([xp.ones_like(sign), xp.ones_like(sign), sign], axis=-1)
    fields = {
        "dist": contacts.dist[world, order],
        "pos": contacts.pos[world, order],
        "normal": sign * axes[..., 0],
        "tangent": sign * axes[..., 1],
    }
    for name, part in (("force", contacts.force), ("torque", contacts.torque)):
        if part is not None:
            fields[name] = reaction * part[world, order]
    for name, values in fields.items():
        here = taken if values.ndim == taken.ndim else taken[..., None]
        fields[name] = xp.where(here, values, 0.0)
    return fields | {"taken": taken}


def _net(contacts: Contacts, sign: Array, xp: ModuleType) -> dict[str, Array]:
    """Return the sum of all contacts in world axes, about their centroid weighted by the forces."""
    assert contacts.force is not None and contacts.torque is not None
    force = (contacts.axes @ contacts.force[..., None])[..., 0]
    torque = (contacts.axes @ contacts.torque[..., None])[..., 0]
    weight = xp.abs(sign) * xp.linalg.norm(force, axis=-1)[:, None]  # (B, P, C)
    total = weight.sum(axis=-1, keepdims=True)
    share = weight / xp.where(total > 0.0, total, 1.0)
    centre = (share[..., None] * contacts.pos[:, None]).sum(axis=-2)
    force = sign[..., None] * force[:, None]
    arm = contacts.pos[:, None] - centre[:, :, None]
    torque = sign[..., None] * torque[:, None] + xp.cross(arm, force)
    return {
        "force": force.sum(axis=-2)[:, :, None],
        "torque": torque.sum(axis=-2)[:, :, None],
        "pos": centre[:, :, None],
    }


def _at_least(contacts: Contacts, size: int, xp: ModuleType) -> Contacts:
    """Pad to a number of contacts in each world; padding has no geoms."""
    missing = size - contacts.dist.shape[1]
    if missing <= 0:
        return contacts

    def padded(values: Array, value: float = 0) -> Array:
        width = [(0, missing) if axis == 1 else (0, 0) for axis in range(values.ndim)]
        return xp.pad(values, width, constant_values=value)

    geoms = padded(contacts.geoms, -1)
    return Contacts(geoms, *(None if part is None else padded(part) for part in contacts[1:]))
