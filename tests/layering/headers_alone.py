#!/usr/bin/env python3
"""Every public header compiles by itself.

    headers_alone.py --compiler g++ --include DIR… --flag=-D… [--only REGEX]    DIR/**.hpp is what is checked
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys


def headers_below(directory):
    for parent, _, names in os.walk(directory):
        for name in sorted(names):
            if name.endswith(".hpp"):
                yield os.path.relpath(os.path.join(parent, name), directory)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    command = [options.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *options.flag]
    command += ["-I" + d for d in options.include] + ["-x", "c++", "-"]
    headers = sorted(h for d in options.include for h in headers_below(d) if re.search(options.only, h))

    def compile_alone(header):
        # Twice: include guards are part of compiling alone.
        unit = "#include <%s>\n#include <%s>\n" % (header, header)
        done = subprocess.run(command, input=unit.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return header, done.returncode, done.stdout.decode("utf-8", "replace")

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for header, status, output in pool.map(compile_alone, headers):
            if status != 0:
                failed += 1
                print("%s does not compile by itself:\n%s" % (header, output[:4000]))
    print("%d headers, %d failed" % (len(headers), failed))
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
