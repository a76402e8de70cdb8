"""Counts what is shown, and prints it as TAP."""


class Tap:
    count = failed = 0

    def ok(self, good, text):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}", flush=True)
