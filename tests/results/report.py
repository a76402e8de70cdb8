"""Runs for report.t and report_browser.t, and what is looked for in their reports. Python's own modules only.

report.py make DIR [NAME=VALUE...]   a folder of a run: workers, epochs, model, state, slow (a rank), nodes, word
report.py check FILE...              prints what is wrong with the form of HTML pages or SVG pictures
report.py table FILE CAPTION|N       a table of a page, tabs between cells
report.py words FILE                 its text
report.py contrast FILE              pairs of colours with too little contrast
"""
import html.parser
import json
import math
import os
import re
import sys
import xml.etree.ElementTree


def make(folder, workers=2, epochs=3, model="mnist-cnn", state="finished", slow=-1, nodes=1, word=""):
    workers, epochs, slow, nodes = int(workers), int(epochs), int(slow), int(nodes)
    os.makedirs(folder, exist_ok=True)
    per_epoch, each = 60000 // (64 * workers), (workers + nodes - 1) // nodes
    seconds = [20 / workers**0.85 + 0.01 * e for e in range(epochs)]
    rows = ["epoch,accuracy,learning_rate,loss,val_accuracy,val_loss"]
    for e in range(epochs):
        loss, val = 0.4 * math.exp(-e / 2) + 0.0004, 0.25 * math.exp(-e / 2) + 0.05
        rows.append(f"{e},{1 - loss / 3:.9g},0.2,{loss:.9g},{1 - val / 4:.9g},{val:.9g}")
    write(folder, "history.csv", "\n".join(rows) + "\n")
    shared = dict(model=model, strategy="multi-worker-mirrored" + word, device="cpu" + word, precision="float32" + word,
                  workers=workers, replicas=1, threads=2, global_batch=64 * workers, parameters=2770634, seed=7,
                  optimizer="sgd" + word, learning_rate=0.2)
    summary = dict(shared, epochs=epochs, start_seconds=1.5, train_seconds=sum(seconds), epoch_seconds=seconds, step_ms=9.5,
                   images_per_second=60000 / seconds[0], loss=loss, accuracy=1 - loss / 3, val_loss=val,
                   val_accuracy=1 - val / 4, peak_rss_mb=412.5)
    live = state == "running"
    names = [f"node{n}{word}" for n in range(nodes)]
    write(folder, "run.json", json.dumps(dict(
        shared, format=1, version="0.1.0" + word, command=["hpc-train", "fit", "--data", "my data" + word],
        starts=[dict(time=1764160000, job="123" + word, host="node0", epoch=0, step=0)], epochs=epochs,
        steps_per_epoch=per_epoch, samples=60000, libraries={"oneDNN" + word: "3.1.0" + word},
        nodes=[dict(name=name, ranks=list(range(n * each, min((n + 1) * each, workers)))) for n, name in enumerate(names)],
        data="/data" + word, checkpoint_dir="/ckpt" + word, state=state, ended=None if live else 1764160100,
        why="SIGTERM" + word if state == "stopped" else None, summary=None if live else summary)))
    with open(folder + "/pace.jsonl", "w", encoding="utf-8") as out:
        for e in range(1, epochs + 1):
            forward = [10 if rank == slow else 5 for rank in range(workers)]
            wait = [max(forward) - f + 1 for f in forward]
            out.write(json.dumps(dict(
                time=1764160000 + e, epoch=e, step=per_epoch, steps=per_epoch,
                step_ms=[f + w + 5 for f, w in zip(forward, wait)], input_ms=[0.5] * workers, forward_ms=forward,
                backward_ms=[3] * workers, wait_ms=wait, update_ms=[1] * workers,
                memory_mb=[100 + rank for rank in range(workers)])) + "\n")
    if live:
        write(folder, "status.json", json.dumps(dict(
            format=1, time=1764160050, state=state, model=model, workers=workers, epoch=3, epochs=8, step=120, steps=469,
            loss=0.1, accuracy=0.9, val_loss=None, val_accuracy=None, images_per_second=9000, step_ms=9.5, seconds_left=740,
            job=None, learning_rate=0.2, job_ends=None, losses=[], ranks=[])))


def write(folder, name, text):
    with open(f"{folder}/{name}", "w", encoding="utf-8") as out:
        out.write(text)


VOID = {"meta", "link", "br"}


class Page(html.parser.HTMLParser):
    """Nesting, headings, names, tables, and what a page that stands alone must not have."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.headings, self.ids, self.used = [], [], [], [], set()
        self.tables, self.captions, self.text, self.attributes, self.cell, self.last = [], [], [], {}, None, ""

    def handle_startendtag(self, tag, attrs):
        self.look(tag, dict(attrs))

    def handle_starttag(self, tag, attrs):
        self.look(tag, dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def look(self, tag, attrs):
        self.attributes.setdefault(tag, []).append(attrs)
        if tag in ("script", "iframe", "object", "embed", "base", "form", "img", "foreignobject"):
            self.wrong.append(f"<{tag}>")
        for name, value in attrs.items():
            if name.startswith("on") or re.search(r"https?:|javascript:|//", value or "") and name != "xmlns":
                self.wrong.append(f"{tag} {name}={value}")
        self.used |= set(re.findall(r"url\(#([\w-]+)\)", " ".join(v or "" for v in attrs.values())))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "table":
            self.tables.append([])
            self.captions.append(self.last)
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th", "caption", "summary", "title"):
            self.cell = ""
        if tag == "svg" and attrs.get("aria-hidden") != "true" and (attrs.get("role") != "img" or not attrs.get("aria-label")):
            self.wrong.append("an svg without role or label")

    def handle_data(self, data):
        self.text.append(data)
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes another")
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.cell)
        if tag == "caption":
            self.captions[-1] = self.cell
        if tag == "summary":
            self.last = self.cell
        if tag == "table":
            self.last = ""
        if tag in ("td", "th", "caption", "summary"):
            self.cell = None


def read(path):
    page = Page()
    with open(path, encoding="utf-8") as file:
        page.source = file.read()
    page.feed(page.source)
    page.close()
    return page


def check(path):
    if path.endswith(".svg"):
        root = xml.etree.ElementTree.parse(path).getroot()
        bad = [e.tag for e in root.iter() if "script" in e.tag or any(k.startswith("on") for k in e.attrib)]
        return bad + ([] if root.tag.endswith("}svg") and root.get("role") == "img" else ["no svg of role img"])
    page = read(path)
    wrong = page.wrong + [f"<{tag}> is open" for tag in page.open]
    if page.attributes.get("html", [{}])[0].get("lang") != "en":
        wrong.append("no lang")
    if not re.search(r"<title>[^<]+</title>", page.source.split("</head>")[0]):
        wrong.append("no title")
    if page.headings[:1] != [1] or page.headings.count(1) != 1:
        wrong.append("no one h1 at first")
    if any(b > a + 1 for a, b in zip(page.headings, page.headings[1:])):
        wrong.append("headings leave a level out")
    if len(set(page.ids)) != len(page.ids) or page.used - set(page.ids):
        wrong.append("ids are not unique or missing")
    for table in page.tables:
        if len({len(row) for row in table}) != 1:
            wrong.append("a table with rows of several lengths")
    if re.search(r"\b(nan|inf)\b", " ".join(re.findall(r' (?:d|x|y|width|height|viewBox)="([^"]*)"', page.source))):
        wrong.append("a place that is no number")
    if "prefers-color-scheme:dark" not in page.source:
        wrong.append("no dark colours")
    return wrong


def luminance(colour):
    colour = colour if len(colour) == 7 else "#" + "".join(2 * c for c in colour[1:])
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(path):
    """WCAG 2.1: 4.5 for text, 3 for lines and fills; light, then dark."""
    style = read(path).source.split("<style>")[1].split("</style>")[0]
    wrong = []
    for dark in (False, True):
        kept = "".join(re.findall(r"prefers-color-scheme:dark\)\{(.*?\})\s*\}", style, re.S)) if dark else \
            re.sub(r"@media \(prefers-color-scheme:dark\)\{.*?\}\s*\}", "", style, flags=re.S)
        names = dict(re.findall(r"--([a-z-]+):(#[0-9a-f]{3,6})", kept))
        rules = re.findall(r"([.a-z0-9,]+)\{(?:stroke|fill):(#[0-9a-f]{6})\}", kept)
        colours = {name[1:]: colour for names_of, colour in rules for name in names_of.split(",")}
        pairs = [(names["text"], names[on], 4.5) for on in ("page", "card", "warn")]
        pairs += [(names["faint"], names[on], 4.5) for on in ("page", "card")]
        pairs += [(colours[c], names["card"], 4.5) for c in ("t", "m")]
        pairs += [(colours[c], names["card"], 3) for c in colours if re.fullmatch(r"[sf]\d|ideal|rest|ax", c)]
        if len(pairs) < 20:
            wrong.append("colours are missing")
        for a, b, least in pairs:
            x, y = sorted((luminance(a), luminance(b)))
            if (y + 0.05) / (x + 0.05) < least:
                wrong.append(f"{a} on {b}: {(y + 0.05) / (x + 0.05):.2f}")
    return wrong


def main():
    command, path, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    if command == "make":
        make(path, **dict(word.split("=", 1) for word in rest))
    elif command == "check":
        print("\n".join(f"{name}: {wrong}" for name in [path] + rest for wrong in check(name)))
    elif command == "contrast":
        print("\n".join(contrast(path)))
    elif command == "words":
        print(" ".join(" ".join(read(path).text).split()))
    else:
        page = read(path)
        which = int(rest[0]) if rest[0].isdigit() else [c.startswith(rest[0]) for c in page.captions].index(True)
        print("\n".join("\t".join(row) for row in page.tables[which]))


main()
