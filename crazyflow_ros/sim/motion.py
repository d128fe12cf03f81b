"""The motion of drones in a tick: accelerations under commands, forces and contacts, integrated."""

from __future__ import annotations

from functools import reduce

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import (
    BodyDerivative,
    BodyState,
    Wrench,
    add,
    add_wrenches,
    cross,
    matrix_rows,
    rotation_matrix,
    scale,
    split,
    stack,
    subtract,
    transform,
    vector,
)
from crazyflow_ros.dynamics.forces.external import DroneContact, External
from crazyflow_ros.dynamics.slung_load import pull
from crazyflow_ros.sim.data import SimData
from crazyflow_ros.sim.integrator import Integrator
from crazyflow_ros.sim.stages import Stage


def derivative(data: SimData, state: BodyState, forces: tuple[External, ...]) -> BodyDerivative:
    """Return the time derivative at a state, under the commands, wrench and parameters of `data`.

    Args:
        data: Commands, external wrench and parameters.
        state: The state, which may differ from that of `data`.
        forces: External forces besides `data.states.force` and `torque`.
    """
    free = free_derivative(data, state, forces)
    return with_contacts(data, state, with_cables(data, state, free), forces)


def free_derivative(
    data: SimData, state: BodyState, forces: tuple[External, ...]
) -> BodyDerivative:
    """Return the `derivative` without cables and without the contacts among the forces."""
    external = Wrench(split(data.states.force), split(data.states.torque))  # type: ignore[arg-type]
    for force in forces:
        if not isinstance(force, DroneContact):
            external = add_wrenches(external, force(state, data.params))
    command = split(data.controls.actuators)
    return data.params.derivative(state, command, external)


def with_cables(data: SimData, state: BodyState, free: BodyDerivative) -> BodyDerivative:
    """Add the cables of a payload, if there is one, to a derivative without cables."""
    if data.payload is None:
        return free
    cables = pull(data.payload.load, state, free, data.params, 1 / data.core.freq)
    return cables.on_drones(free)


def with_contacts(
    data: SimData, state: BodyState, rate: BodyDerivative, forces: tuple[External, ...]
) -> BodyDerivative:
    """Add the contacts to a derivative without contacts; the result is that of `derivative`."""
    for contact in forces:
        if isinstance(contact, DroneContact):
            rate = data.params.pushed(state, rate, contact(state, rate, data.params))
    return rate


def contact_wrench(data: SimData, forces: tuple[External, ...]) -> Array:
    """Return the wrench (N, M, 6) of the contacts among `forces`, see `Sim.contact_wrench`."""
    params, rate = data.params, data.states_deriv
    free = free_derivative(data, data.states.components, forces)
    free = with_cables(data, data.states.components, free)
    force = scale(subtract(vector(rate.acc), free.acc), params.mass[..., 0])
    turned = subtract(vector(rate.ang_acc), free.ang_acc)
    turn = rotation_matrix(data.states.components.quat)
    torque = transform(turn, transform(matrix_rows(params.J), turned))
    return stack((*force, *torque))


def as_impulses(
    data: SimData, state: BodyState, free: BodyDerivative, rate: BodyDerivative
) -> BodyDerivative:
    """Return the derivative with which a step of explicit Euler conserves momentum in collisions.

    A contact acts as an impulse at the position before the step. With the velocity and the axes
    from before the step, as for free drones, a collision would change the angular momentum of the
    two drones. Drones in contact therefore advance with the velocity after the step, and the moment
    of the impulse is in their axes after the step.

    Args:
        data: Parameters and step frequency.
        state: The state at which the derivatives are.
        free: Derivative without contacts.
        rate: Derivative with contacts.
    """
    dt = 1 / data.core.freq
    moved, turned = subtract(rate.acc, free.acc), subtract(rate.ang_acc, free.ang_acc)
    touches = reduce(jnp.logical_or, (a != 0 for a in (*moved, *turned)))
    x, y, z = (jnp.where(touches, v + a * dt, v) for v, a in zip(state.vel, rate.acc))
    moment = transform(matrix_rows(data.params.J), turned)
    turn = scale(cross(moment, state.ang_vel), dt)
    turn = add(turn, scale(cross(turn, state.ang_vel), dt / 2))
    change = transform(matrix_rows(data.params.J_inv), turn)
    return rate._replace(vel=(x, y, z), ang_acc=add(rate.ang_acc, change))


def integration(integrator: Integrator, forces: tuple[External, ...]) -> Stage:
    """Return the stage that advances the state by one tick."""
    contacts = any(isinstance(force, DroneContact) for force in forces)
    impulsive = contacts and integrator is Integrator.euler

    def integrate(data: SimData) -> SimData:
        if data.payload is not None:
            return carrying_tick(data, forces)

        def rate_at(state: BodyState) -> BodyDerivative:
            free = free_derivative(data, state, forces)
            rate = with_contacts(data, state, free, forces)
            return as_impulses(data, state, free, rate) if impulsive else rate

        state = integrator.fn(data.states.components, rate_at, 1 / data.core.freq)
        return data.replace(states=data.states.with_components(state))

    return integrate


def carrying_tick(data: SimData, forces: tuple[External, ...]) -> SimData:
    """Return data with a payload after a tick; drones advance by symplectic Euler."""
    assert data.payload is not None
    before, load, dt = data.states.components, data.payload.load, 1 / data.core.freq
    free = free_derivative(data, before, forces)
    cables = pull(load, before, free, data.params, dt)
    rate = with_contacts(data, before, cables.on_drones(free), forces)
    state = Integrator.symplectic_euler.fn(before, lambda _: rate, dt)
    after = data.payload.after_tick(load, cables, dt)
    return data.replace(states=data.states.with_components(state), payload=after)
