"""take.py LOW HIGH listen|bind|six: has these TCP ports, listening or merely bound, or listening for IPv6 alone, until it is ended.
As many processes as it takes to have so many files open."""
import errno, os, resource, signal, socket, sys, time


def bind(s, port):
    """Of a connection that somebody has closed, the port is taken for another minute."""
    end = time.monotonic() + 90
    while True:
        try:
            return s.bind(("", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > end:
                raise
        time.sleep(0.1)


low, high, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
each = most - 50
os.setpgid(0, 0)
taken = []
for first in range(low, high + 1, each):
    if first + each <= high and os.fork() > 0:
        continue
    for port in range(first, min(first + each, high + 1)):
        s = socket.socket(socket.AF_INET6 if how == "six" else socket.AF_INET)
        if how == "six":
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bind(s, port)
        if how != "bind":
            s.listen()
        taken.append(s)
    break
print("taken", len(taken), flush=True)
signal.pause()
