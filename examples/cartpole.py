"""Balance a pole on a cart by policy gradients (REINFORCE, Williams 1992), physics included.

    python examples/cartpole.py

The cart-pole of Barto, Sutton and Anderson (1983): push left or right fifty times a second, and keep the pole within 12
degrees. Programs like this make hundreds of thousands of tiny operations, where the cost of a call is everything.
"""

import argparse
import math
import time

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
LIMIT = 200  # ticks in an episode


def physics(state: Tensor, action: Tensor) -> Tensor:
    """One tick for a batch of carts; ``state`` is (n, 4): place, speed, angle, angular speed; ``action`` is 0 or 1."""
    x, v, angle, spin = state.unbind(1)
    push = FORCE * (2 * action - 1)
    sine, cosine = angle.sin(), angle.cos()
    inner = (push + POLE * HALF_LENGTH * spin**2 * sine) / (CART + POLE)
    lever = HALF_LENGTH * (4 / 3 - POLE * cosine**2 / (CART + POLE))
    spin_change = (GRAVITY * sine - cosine * inner) / lever
    v_change = inner - POLE * HALF_LENGTH * spin_change * cosine / (CART + POLE)
    return taeda.stack([x + TICK * v, v + TICK * v_change, angle + TICK * spin, spin + TICK * spin_change], 1)


def fallen(state: Tensor) -> Tensor:
    """Which carts have left the track or dropped the pole."""
    return (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 12 * math.pi / 180)


def play(policy: nn.Module, carts: int) -> tuple[Tensor, Tensor, Tensor]:
    """Play ``carts`` episodes side by side: states, actions, and whether each cart was still up, over (time, cart)."""
    states, actions, alive = [], [], []
    state = (taeda.rand(carts, 4) - 0.5) * 0.1
    up = taeda.ones(carts, dtype=taeda.bool)
    with taeda.no_grad():
        for _ in range(LIMIT):
            action = taeda.multinomial(F.softmax(policy(state), 1), 1)[:, 0]
            states.append(state)
            actions.append(action)
            alive.append(up)
            state = physics(state, action)
            up = up & ~fallen(state)
            if not up.any():
                break
    return taeda.stack(states), taeda.stack(actions), taeda.stack(alive)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--device", default="cpu", help="where it runs: cpu, cuda")
    args = parser.parse_args()
    start = time.perf_counter()
    taeda.manual_seed(0)
    taeda.set_default_device(args.device)
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = taeda.optim.Adam(policy.parameters(), lr=3e-3)
    length = 0.0
    for n in range(1, args.rounds + 1):
        states, actions, alive = play(policy, carts=32)
        up = alive.float()
        to_go = up.flip(0).cumsum(0).flip(0)  # ticks that each cart still stood from here on: the return
        mean = (to_go * up).sum() / up.sum()
        advantage = (to_go - mean) / ((((to_go - mean) ** 2 * up).sum() / up.sum()).sqrt() + 1e-6)
        log_p = F.log_softmax(policy(states), 2).gather(2, actions[..., None])[..., 0]
        loss = -(log_p * advantage * up).sum() / up.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        length = up.sum(0).mean().item()
        if n % 10 == 0:
            print(f"round {n:3}: the pole stood {length:.0f} of {LIMIT} ticks")
    print(f"{time.perf_counter() - start:.1f} s; at the end the pole stood {length:.0f} of {LIMIT} ticks")


if __name__ == "__main__":
    main()
