#!/usr/bin/env python3
"""README.md and docs/ stay true: every C++ block stands verbatim in a compiled example, and every relative link and script leads somewhere.

    check_docs.py ROOT | --self-test
"""
import glob
import os
import re
import sys
import tempfile

BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
SCRIPT = re.compile(r"`((?:scripts|bench|\.ci)/[\w./-]+)")


def pages(root):
    return [p for p in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *sorted(glob.glob("docs/*.md", root_dir=root))]
            if os.path.exists(os.path.join(root, p))]


def lines_of(text):
    """What counts of a block: its lines without indentation and blanks."""
    return "\n".join(line.strip() for line in text.split("\n") if line.strip())


def problems(root):
    compiled = []
    for path in sorted(glob.glob("examples/**/*.cpp", root_dir=root, recursive=True)):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            compiled.append(lines_of(f.read()))
    for page in pages(root):
        with open(os.path.join(root, page), encoding="utf-8") as f:
            text = f.read()
        for block in BLOCK.finditer(text):
            if not any(lines_of(block.group(1)) in source for source in compiled):
                yield "%s:%d: this C++ block is in no example" % (page, text.count("\n", 0, block.start()) + 1)
        for link in LINK.finditer(text):
            if not os.path.exists(os.path.join(root, os.path.dirname(page), link.group(1))):
                yield "%s:%d: the link %s leads nowhere" % (page, text.count("\n", 0, link.start()) + 1, link.group(1))
        for name in SCRIPT.finditer(text):
            path = name.group(1).rstrip("./")
            if not any(os.path.exists(os.path.join(root, p)) for p in (path, path + ".cpp")):
                yield "%s:%d: there is no %s" % (page, text.count("\n", 0, name.start()) + 1, path)


def self_test():
    good = {"README.md": "```cpp\nint f();\n\n  int g();\n```\n[x](docs/a.md) `scripts/x`\n", "docs/a.md": "[y](../README.md#top)\n",
            "examples/a/main.cpp": "// one\n    int f();\n    int g();\n", "scripts/x": ""}
    bad = {"README.md": "```cpp\nint h();\n```\n[x](docs/b.md) `scripts/y`\n"}
    failures = []
    for files, expected in ((good, 0), ({**good, **bad}, 3)):
        with tempfile.TemporaryDirectory(prefix="docs-") as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            found = list(problems(root))
            if len(found) != expected:
                failures.append("expected %d problems, found %s" % (expected, found))
    for line in failures:
        print("self-test: " + line)
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = list(problems(sys.argv[1]))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
