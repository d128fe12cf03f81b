"""Trainings with several seeds and learning rates, each a task of Ray.

    pip install ray
    python examples/cluster/ray_sweep.py --seeds 3 --rates 0.008 0.016

Without a cluster, Ray divides the cores of this machine; `RAY_ADDRESS=auto` uses the cluster to
which the machine belongs. Each training is one process on one core or GPU. Larger ones, which need
several devices each, are started as in the other files of this folder.
"""

from __future__ import annotations

import argparse

import ray


@ray.remote(num_cpus=1, max_retries=3)
def success(seed: int, rate: float, updates: int, worlds: int) -> float:
    """Return the share of successful flights of a policy for the task `hover`."""
    from crazyflow_ros.learn import READY, Bptt, BpttSettings, evaluate, train

    ready = READY["hover"]
    task = ready.task()
    settings = BpttSettings(seed=seed, learning_rate=rate, updates=updates, spread=ready.spread)
    learner = Bptt(ready.batch(worlds, task, "cf2x_L250"), settings)
    return evaluate(train(learner).policy, task, starts=200).near


def main() -> None:
    """Train with all combinations, and print the best last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.008, 0.016])
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--worlds", type=int, default=96)
    a = parser.parse_args()
    ray.init()
    given = [(seed, rate) for rate in a.rates for seed in range(a.seeds)]
    tasks = [success.remote(seed, rate, a.updates, a.worlds) for seed, rate in given]
    for share, (seed, rate) in sorted(zip(ray.get(tasks), given)):
        print(f"learning rate {rate:g}, seed {seed}: {share:.1%} of the flights end at the goal")


if __name__ == "__main__":
    main()
