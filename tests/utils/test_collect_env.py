"""``taeda.utils.collect_env``: facts about the machine."""

import sys

from taeda.utils import collect_env


def test_commands():
    assert collect_env.run([sys.executable, "-c", "print(' a\\nb ')"]) == (0, "a\nb", "")
    status, printed, errors = collect_env.run("echo a; echo b >&2; exit 3")
    assert (status, printed, errors) == (3, "a", "b")


def test_facts_come_from_the_function_that_is_given():
    said = {
        "lscpu": "Model: 1", "sysctl -n machdep.cpu.brand_string": "Model: 1", "gcc --version": "gcc (X) 12.1",
        "nvidia-smi -L": "GPU 0: Y (UUID: GPU-1)", "nvidia-smi": "| Driver Version: 1.2  CUDA |",
    }  # fmt: skip
    facts = {
        collect_env.get_cpu_info: "Model: 1", collect_env.get_gcc_version: "(X) 12.1",
        collect_env.get_gpu_info: "GPU 0: Y", collect_env.get_nvidia_driver_version: "1.2",
    }  # fmt: skip
    for fact, want in facts.items():
        assert fact(lambda command: (0, said[command], "")) == want
        assert fact(lambda command: (1, "", "no")) == ("no" if fact is collect_env.get_cpu_info else None)
