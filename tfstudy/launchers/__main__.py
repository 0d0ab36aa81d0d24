"""`python -m tfstudy.launchers JOB`: one run, told as JSON, in a program of its own. Ends with the launcher's pipe."""

import json
import os
import sys

from tfstudy.launchers.job import ALIVE, Job, end_with, perform

if launcher := os.environ.pop(ALIVE, ""):
    end_with(lambda: os.read(int(launcher), 1))
sys.exit(perform(Job(**json.loads(sys.argv[1]))))
