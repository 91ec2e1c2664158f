#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""interrupt.py SIGNAL[,end] INPUT COMMAND...: send a signal to a filter that waits for more input.

The command gets INPUT through a pipe that stays open, and the signal once it has read all of it and blocks. With "end" the
pipe ends before the command can act on the signal. Its outputs are those of this program; so is its status, as a shell shows it (128 + N). A
command that is still there ten seconds later is killed, and the status is 99.
"""

import fcntl
import signal
import struct
import subprocess
import sys
import termios
import time

name, _, with_end = sys.argv[1].partition(",")
number = signal.Signals[name]
with open(sys.argv[2], "rb") as file:
    rows = file.read()
with subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE) as process:
    process.stdin.write(rows)
    process.stdin.flush()
    unread = 1
    while unread and process.poll() is None:
        time.sleep(0.02)
        unread = struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0" * 4))[0]
    time.sleep(0.1)  # from the read to what follows from it
    if with_end:
        process.send_signal(signal.SIGSTOP)
        process.send_signal(number)
        process.stdin.close()
        process.send_signal(signal.SIGCONT)
    else:
        process.send_signal(number)
    try:
        status = process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        sys.exit(99)
sys.exit(status if status >= 0 else 128 - status)
