"""key_in_core.py PID KEY: how many quarters of the key a core dump of the process would hold, as bytes or as text. A dump has private
memory, except for what is excluded from it (VmFlags: dd)."""
import re
import sys

pid, key = sys.argv[1:]
found = 0
with open(f"/proc/{pid}/smaps", encoding="utf8") as ranges, open(f"/proc/{pid}/mem", "rb", 0) as memory:
    for line in ranges:
        place = re.match(r"([0-9a-f]+)-([0-9a-f]+) (....) ", line)
        if place:
            low, high, mode = int(place[1], 16), int(place[2], 16), place[3]
        elif line.startswith("VmFlags:") and mode[0] == "r" and mode[3] == "p" and " dd" not in line:
            try:
                memory.seek(low)
                content = memory.read(high - low)
            except (OSError, ValueError, OverflowError):
                continue  # not memory, such as [vvar]
            for part in (key[i:i + 16] for i in range(0, 64, 16)):
                found += content.count(part.encode()) + content.count(bytes.fromhex(part))
print(found)
