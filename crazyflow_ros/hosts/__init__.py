"""Several simulators, on one host or many, share one world and one time.

docs/guides/scale.md is for users; this is how it works.

Each simulator *owns* some of the drones: their commands, commander, topics and sensors are there
and nowhere else. The physics of all drones is computed by all simulators, because it is a small
share of what a drone costs; so collisions and downwash need no exchange of states, and what crosses
are inputs only: for each drone the command, its level, and the external force and torque, in the
form that the compiled world takes. This world is the one of a single simulator with all drones, so
its bits are the same.

**Rounds.** Inputs hold up to a tick that their owner names: at most to the next run of the
outermost controller, and not beyond the end of a force. There a *round* begins: each simulator
sends the inputs of its drones, and waits for those of the others, so nobody passes a tick that
another one could still change (a conservative clock, see Chandy and Misra, 1979). Commands that
arrive in between wait for the next round.

**Requests** that change the state, or let time run, are carried out by all simulators. A request
goes into the next round's message of the simulator that was asked; all carry out the union, in the
order of the simulators' names, one after the other, before they go on; then the next round follows
at the same tick, and the request is answered. While time stands still, a round begins when one has
a request. What cannot be sent, such as a function that edits the scene, is refused.

**Agreement.** A message carries tick, number of resets and a digest of the state at which its round
begins. Where they differ, time is held on all simulators, which name those that differ, until a
checkpoint is restored; processors that round differently are found so, not by diverging swarms.

**Coming and going.** A simulator is present as long as its transport says so. Time begins once all
are there and have compared their configurations. If one goes, the others pause at the next round
with its name in the reason, and refuse requests; when it has come back, a restored checkpoint makes
its state that of all. Each coming and going makes a new *view*, whose rounds begin at 0, so that no
message of an old one counts.

Messages are JSON and numbers, with limits; methods and classes come from a closed list, and values
pass the checks that those of users pass.
"""

from crazyflow_ros.hosts.settings import Hosts
from crazyflow_ros.hosts.shared_thread import SharedThread

__all__ = ["Hosts", "SharedThread"]
