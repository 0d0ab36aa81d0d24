"""The signals, the socket and the folder of the server from which processes are forked. The server imports this first.

Ctrl-C reaches the server too; it ignores it, and ends when its launcher does. If the launcher was killed, the server
removes the folder of its socket.
"""

import atexit
import os
import shutil
import signal

SOCKET_FOLDER = "TFSTUDY_SOCKET_FOLDER"  # environment variable of the server: the folder, and the launcher's id


def remove_socket(folder: str, launcher: int, server: int) -> None:
    """Remove the folder of the socket at the end of the server if the launcher has ended; both are process ids."""
    if os.getpid() == server and os.getppid() != launcher:
        shutil.rmtree(folder, ignore_errors=True)


is_server = SOCKET_FOLDER in os.environ
if is_server:
    os.chdir("/")  # the launcher's folder may be removed during the imports; each process changes to it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    folder, _, launcher = os.environ.pop(SOCKET_FOLDER).rpartition(" ")
    atexit.register(remove_socket, folder, int(launcher), os.getpid())
