"""One line that says what runs, on a terminal; nothing elsewhere."""

import sys
import time


class Progress:
    def __init__(self, steps):
        self.steps, self.done, self.start = steps, 0, time.monotonic()
        self.shown = sys.stderr.isatty()

    def step(self, text):
        if self.shown:
            elapsed = time.monotonic() - self.start
            left = f", {elapsed / self.done * (self.steps - self.done):.0f} s left" if self.done else ""
            print(f"\r\x1b[K[{self.done}/{self.steps}{left}] {text}", end="", file=sys.stderr, flush=True)
        self.done += 1

    def clear(self):
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
