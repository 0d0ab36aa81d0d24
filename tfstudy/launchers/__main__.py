"""`python -m tfstudy.launchers JOB`: execute one job, given as JSON. The process is killed when its launcher ends."""

import os
import sys

import msgspec

from tfstudy.launchers.job import Job, perform
from tfstudy.launchers.processes import LAUNCHER_PIPE, kill_with

if pipe := os.environ.pop(LAUNCHER_PIPE, ""):
    kill_with(lambda: os.read(int(pipe), 1))
sys.exit(perform(msgspec.json.decode(sys.argv[1], type=Job)))
