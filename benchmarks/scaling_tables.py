"""The tables of docs/scaling.md, from what benchmarks/scaling.py measured: rates on two cores, and the arithmetic to a thousand."""

from __future__ import annotations

import report

BEGIN, END = "<!-- benchmarks/scaling.py -->", "<!-- end -->"
HOP = 50e-6  # s, of a message between machines by TCP on Ethernet
BANDWIDTH = 117e6  # bytes/s, of gigabit Ethernet
THREADS = (1, 2, 4, 8, 16, 64)
LAYOUTS = [(1, 1), (1, 8), (8, 1), (8, 8), (64, 1), (125, 8), (1000, 1)]  # processes, threads of each


def serial_share(times):
    """Of an epoch on one thread: what is not in the batch's calls, which threads share."""
    one = times["1 thread"]
    return 1 - one["physics"] / one["epoch"]


def epoch_of(times, threads):
    """Seconds of an epoch on so many threads, by Amdahl's law."""
    serial = serial_share(times)
    return times["1 thread"]["epoch"] * (serial + (1 - serial) / threads)


def messages_of(times, processes):
    """Seconds that the messages of an epoch take in a ring of machines: 2 (N - 1) hops each, and twice the bytes less a share."""
    sent = times["2 ranks"]
    hops = 2 * (processes - 1) * sent["messages"] * HOP
    return hops + 2 * (processes - 1) / processes * sent["bytes"] / BANDWIDTH


def rates(data):
    """Control steps per second on one core and on two, and their ratio."""
    samples = data["num_envs"] * data["horizon"]
    rows = []
    for name, rate in data["environments"].items():
        rows.append([f"`{name}`, steps", rate["1"], rate["2"]])
    for name, rate in data["gradients"].items():
        rows.append([f"`Diff{name}-v0`, steps and their gradient", rate["1"], rate["2"]])
    for name, times in data["shac"].items():
        one = samples / times["1 thread"]["epoch"]
        rows.append([f"SHAC, {name}: threads", one, samples / times["2 threads"]["epoch"]])
        rows.append([f"SHAC, {name}: two runs side by side", one, 2 * samples / times["2 runs"]["epoch"]])
        ranked = samples / times["1 rank"]["epoch"]
        rows.append([f"SHAC, {name}: processes of torchrun", ranked, 2 * samples / times["2 ranks"]["epoch"]])
    cells = [[name, f"{one:.0f}", f"{two:.0f}", f"{two / one:.2f}"] for name, one, two in rows]
    return report.markdown(["control steps per second", "1 core", "2 cores", "ratio"], cells)


def epochs(data):
    """What an epoch is made of."""
    rows = []
    for name, times in data["shac"].items():
        one, two = times["1 thread"], times["2 ranks"]
        foretold = epoch_of(times, 2) / times["2 threads"]["epoch"]
        row = [name, f"{1e3 * one['epoch']:.0f}", f"{serial_share(times):.2f}", f"{foretold:.2f}"]
        rows.append([*row, f"{two['messages']:.0f}", f"{two['bytes'] / 1e3:.0f}", f"{1e6 * two['hop']:.0f}"])
    titles = ["SHAC", "ms an epoch", "serial share", "foretold/measured, 2 threads", "messages", "kB", "µs a hop here"]
    return report.markdown(titles, rows)


def amdahl(data):
    """How many times faster one process is on more threads."""
    rows = []
    for name, times in data["shac"].items():
        rows.append([name, *(f"{epoch_of(times, 1) / epoch_of(times, threads):.2f}" for threads in THREADS)])
    return report.markdown(["one process, threads:", *map(str, THREADS)], rows)


def processes(data):
    """Processes on machines of their own, with threads: samples per second, and what is left of those of as many single cores."""
    samples = data["num_envs"] * data["horizon"]
    rows = []
    for name, times in data["shac"].items():
        alone = samples / epoch_of(times, 1)
        for count, threads in LAYOUTS:
            messages = messages_of(times, count)
            rate = count * samples / (epoch_of(times, threads) + messages)
            row = [name, str(count * threads), f"{count} x {threads}", f"{1e3 * messages:.0f}", f"{rate:.0f}"]
            rows.append([*row, f"{100 * rate / (alone * count * threads):.0f} %"])
    titles = ["SHAC", "cores", "processes x threads", "ms of messages", "control steps per second", "of single cores'"]
    return report.markdown(titles, rows)


def lines_of(data):
    return [
        f"Measured, with a load of {data['load']:.1f} from others on the machine before it began:",
        "",
        *rates(data),
        "",
        *epochs(data),
        "",
        f"Computed, for machines on gigabit Ethernet ({1e6 * HOP:.0f} µs a hop, {BANDWIDTH / 1e6:.0f} MB/s):",
        "",
        *amdahl(data),
        "",
        *processes(data),
    ]


def put_into_page(page, lines):
    """Replaces what stands between the two marks of a page."""
    text = page.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    page.write_text(f"{head}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{tail}")
