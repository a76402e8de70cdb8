"""stopper.py JOB TASK|HELPER|FIRST: beside the job, as its user: stops the processes that slurmstepd starts as him, again and again.
TASK: first it kills the task that stages, so that slurmstepd itself has to tell the step's components; what it forks for that is stopped.
FIRST: as soon as they are his."""
import os
import re
import signal
import sys
import time

job, what = sys.argv[1:]
forks = re.compile(rb"slurmstepd: \[%s\.0\]" % job.encode())
helper = re.compile(rb".*bin/(slow|hpc-train)-stage .*/%s " % job.encode(), re.DOTALL)


def processes(*patterns):
    """Those of the user whose arguments match."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                arguments = file.read().replace(b"\0", b" ")
            if any(pattern.match(arguments) for pattern in patterns):
                with open(f"/proc/{pid}/status", encoding="utf8") as file:
                    if re.search(rf"^Uid:\s+\d+\s+{os.geteuid()}\s", file.read(), re.MULTILINE):
                        yield int(pid)
        except OSError:
            pass  # it has ended


def send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


while what != "FIRST" and not any(processes(helper)):
    time.sleep(0.05)
tasks = list(processes(forks)) if what == "TASK" else []
for task in tasks:
    send(task, signal.SIGKILL)
said = False
while True:
    for process in processes(*((forks,) if what == "TASK" else (forks, helper))):
        if process not in tasks and send(process, signal.SIGSTOP) and not said:
            said = True
            print("stopped", flush=True)
    time.sleep(0.01)
