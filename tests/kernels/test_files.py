"""Files are written as a whole or not at all, and nothing is left beside them."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import taeda
from taeda.kernels import build, files


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="disk"), files.atomic_write(path) as file:
        file.write(b"new")
        raise OSError("disk full")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["model"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "model"
    code = f"""
        import time
        from taeda.kernels import files
        with files.atomic_write({str(path)!r}) as file:
            file.write(b"half")
            file.flush()
            print("writing", flush=True)
            time.sleep(100)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    (tmp_path / "model.other.tmp").write_bytes(b"somebody else's")
    with files.atomic_write(path) as file:
        file.write(b"first")
    assert len(os.listdir(tmp_path)) == 3  # the other still writes
    process.kill()
    process.wait()
    with files.atomic_write(path) as file:
        file.write(b"second")
    assert sorted(os.listdir(tmp_path)) == ["model", "model.other.tmp"] and path.read_bytes() == b"second"


def test_links_stay_and_pipes_and_devices_are_written_to(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    taeda.save(taeda.ones(2), tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and taeda.load(tmp_path / "real").tolist() == [1, 1]
    taeda.save(taeda.ones(2), os.devnull)
    assert not os.path.isfile(os.devnull)
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    with files.atomic_write(tmp_path / "pipe") as file:
        file.write(b"through")
    assert reader.communicate()[0] == b"through"


def test_a_pair_of_files_belongs_together_at_any_moment(tmp_path, monkeypatch):
    path = tmp_path / "model"
    steps = []

    def write(version):
        def data(file):
            file.write(f"{version}".encode())

        files.write_with_data(path, data, lambda name: f"{version} {name}".encode())

    def check():
        if path.exists():
            version, name = path.read_text().split()
            assert (tmp_path / name).read_text() == version
            steps.append(version)

    replace = os.replace

    def watched(*args):
        check()
        replace(*args)
        check()

    write(1)
    monkeypatch.setattr(files.os, "replace", watched)
    write(2)
    monkeypatch.setattr(files, "_give_name", lambda *args: False)  # no hard links
    write(3)
    check()
    assert set(steps) == {"1", "2", "3"} and sorted(os.listdir(tmp_path)) == ["model", "model.data"]
    for stop in range(8):  # killed before each step
        left = [stop]

        def failing(*args, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise OSError("killed")
            replace(*args)

        monkeypatch.setattr(files.os, "replace", failing)
        try:
            write(stop)
        except OSError:
            check()
    monkeypatch.setattr(files.os, "replace", replace)
    write(9)
    check()
    assert sorted(os.listdir(tmp_path)) == ["model", "model.data"]


def _run(code, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "TAEDA_CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env={**env, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


_OPS = "import taeda; print((taeda.ones(3) + 1).exp().sum().item(), taeda.arange(3).tolist())"


@pytest.mark.parametrize("place", ["no home", "a file", "full"])
def test_kernels_are_kept_in_memory_where_they_cannot_be_kept_on_disk(tmp_path, place):
    before = ""
    where = {}
    if place == "no home":
        before = "import pwd; pwd.getpwuid = lambda uid: {}[uid]\n"
    elif place == "a file":
        (tmp_path / "file").write_bytes(b"")
        where = {"TAEDA_CACHE": str(tmp_path / "file")}
    else:
        where = {"TAEDA_CACHE": str(tmp_path)}
        before = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        before += "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
    done = _run(before + _OPS, **where)
    assert done.stdout.split()[1:] == ["[0,", "1,", "2]"]
    assert done.stderr.count("TAEDA_CACHE") == 1
    assert [f for _, _, names in os.walk(tmp_path) for f in names] == (["file"] if place == "a file" else [])


def test_a_pipe_in_the_cache_is_no_entry(tmp_path):
    path = tmp_path / "aa" / "entry.o"
    path.parent.mkdir()
    os.mkfifo(path)
    assert build.read_entry(path) is None and not path.exists()
    path.mkdir()
    assert build.read_entry(path) is None


def test_a_killed_compilation_leaves_nothing_after_the_next(tmp_path):
    code = """
        import os, taeda
        from taeda.kernels import files
        def stop(*args):
            print("writing", flush=True)
            import time
            time.sleep(100)
        files.os.replace = stop
        taeda.ones(3) + 1
    """
    env = {**os.environ, "TAEDA_CACHE": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, env=env)
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert any(name.endswith(".tmp") for name in os.listdir(tmp_path))
    _run(_OPS, TAEDA_CACHE=str(tmp_path))
    left = [name for _, _, names in os.walk(tmp_path) for name in names if not name.endswith(".o")]
    assert left == []
