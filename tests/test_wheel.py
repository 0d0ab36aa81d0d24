"""The wheel carries all that a run needs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_a_wheel_runs_in_an_empty_folder(tmp_path):
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels, site, empty = tmp_path / "wheels", tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = wheels.iterdir()
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True, capture_output=True)

    command = [sys.executable, "-m", "tfstudy", "run", "scan", "--arch", "transformer", "--smoke"]
    done = subprocess.run(
        command, cwd=empty, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "SMOKE RUN" in done.stdout
    where = (
        "import tfstudy.config.files as c; from tfstudy import tasks; print(tasks.__file__, c.__file__, c.configs())"
    )
    places = subprocess.run(
        [sys.executable, "-c", where],
        cwd=empty,
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == {"tfstudy", "bin"}
    assert all(Path(place).is_relative_to(site) for place in places)
