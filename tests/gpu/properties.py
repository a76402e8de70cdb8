#!/usr/bin/env python3
"""properties.py [--of FILE]: the description that cuDNN (9.11 or later) makes of the first GPU, as JSON, for
tests/fixtures/gpu/: with it cuDNN chooses engines for that GPU where there is none. --of: reads such a description and
prints what cuDNN has taken of it."""
import ctypes
import json
import sys

DESCRIPTOR, DEVICE_ID, REPRESENTATION, INT32, CHAR = 38, 2700, 2702, 23, 24  # cudnn_graph.h
MOST = 1 << 14


def main():
    cudnn = ctypes.CDLL("libcudnn.so.9")

    def call(name, *arguments):
        code = getattr(cudnn, f"cudnnBackend{name}")(*arguments)
        if code != 0:
            cudnn.cudnnGetErrorString.restype = ctypes.c_char_p
            sys.exit(f"properties.py: cudnnBackend{name}: {cudnn.cudnnGetErrorString(code).decode()}")

    device = ctypes.c_void_p()
    call("CreateDescriptor", DESCRIPTOR, ctypes.byref(device))
    if sys.argv[1:2] == ["--of"]:
        with open(sys.argv[2], "rb") as file:
            text = json.dumps(json.load(file), separators=(",", ":")).encode() + b"\0"
        call("SetAttribute", device, REPRESENTATION, CHAR, ctypes.c_int64(len(text)), text)
    else:
        number = ctypes.c_int32(0)
        call("SetAttribute", device, DEVICE_ID, INT32, ctypes.c_int64(1), ctypes.byref(number))
    call("Finalize", device)
    count, text = ctypes.c_int64(), ctypes.create_string_buffer(MOST)
    call("GetAttribute", device, REPRESENTATION, CHAR, ctypes.c_int64(MOST), ctypes.byref(count), text)
    print(json.dumps(json.loads(text.value), indent=1))


main()
