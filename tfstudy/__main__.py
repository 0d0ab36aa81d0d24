"""`python -m tfstudy`."""

from tfstudy.cli import main

main()
