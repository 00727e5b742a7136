#!/usr/bin/env python3
"""The layer rule, read from the sources: who may include and link whom, and what no header may name.

    check_layers.py ROOT           prints every violation; exit status 1 when there is one
    check_layers.py --self-test    plants each kind of violation in a scratch tree and demands that it is found
"""
import os
import re
import sys
import tempfile

# Folder of a package -> its name, and the packages whose headers it may see.
FOLDERS = {
    "net/base": "base",
    "net": "net",
    "providers/model": "model",
    "providers": "providers",
    "governance": "governance",
    "runtime/agent": "agent",
    "builtins": "builtins",
    "tests/support": "testing",
}
MAY_SEE = {
    "base": set(),
    "net": {"base"},
    "model": {"base"},
    "providers": {"model", "net", "base"},
    "governance": {"base"},
    "agent": {"base", "model", "governance"},
    "builtins": {"agent", "base", "model", "governance", "net"},
    "testing": {"net", "model", "base"},
}
# Targets that are build machinery rather than packages.
MACHINERY = {"boost", "options", "build"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# In no header of any kind: they cost every unit that includes them, and tie users to our dependencies.
NO_HEADER = re.compile(r"^(boost/asio\.hpp|boost/beast\.hpp|simdjson(\.h|/)|re2/|sqlite3)")
# And in no public header: streams, sockets, TLS and the libraries behind our facades.
NO_PUBLIC_HEADER = re.compile(r"^(boost/beast/|boost/asio/(ip|ssl|local|posix)/|boost/asio/(ssl|basic_stream_socket|read|write)\.hpp|openssl/|ares|idn2|zlib|valijson|date/|fmt/|CLI/)")
NO_FILE = re.compile(r"^(boost/asio\.hpp|boost/beast\.hpp)$")


def package_of(path):
    """The package a file of the tree belongs to, or None."""
    for folder in sorted(FOLDERS, key=len, reverse=True):
        if path.startswith(folder + "/"):
            inner = path[len(folder) + 1:]
            return FOLDERS[folder] if inner.split("/")[0] in ("include", "src", "CMakeLists.txt") else None
    return None


def sources(root):
    for folder in sorted({f.split("/")[0] for f in FOLDERS}):
        for directory, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith((".hpp", ".cpp", ".ipp")) or name == "CMakeLists.txt":
                    yield os.path.relpath(os.path.join(directory, name), root)


def check_source(path, text, package):
    header = not path.endswith(".cpp")
    public = "/include/" in path
    for number, line in enumerate(text.split("\n"), 1):
        where = "%s:%d" % (path, number)
        if public and line.startswith("using namespace "):
            yield "%s: `using namespace` at namespace scope of a public header" % where
        found = INCLUDE.match(line)
        if not found:
            continue
        quote, name = found.groups()
        if name.startswith("reagent/"):
            target = name.split("/")[1] if name.count("/") >= 2 else "reagent"
            if target != package and target not in MAY_SEE[package]:
                yield "%s: %s must not include %s (%s)" % (where, package, target, name)
            if quote == '"':
                yield "%s: packages are included with angle brackets (%s)" % (where, name)
        elif quote == '"' and ".." in name.split("/"):
            yield "%s: a path that climbs out of its folder (%s)" % (where, name)
        if NO_FILE.match(name) or (header and NO_HEADER.match(name)) or (public and NO_PUBLIC_HEADER.match(name)):
            yield "%s: %s must not stand in %s" % (where, name, "a public header" if public else "a header" if header else "any file")


def check_cmake(path, text, package):
    text = re.sub(r"#[^\n]*", "", text)
    for command in re.finditer(r"\b(reagent_package|target_link_libraries)\s*\(([^)]*)\)", text):
        words = command.group(2).split()
        for word in words[1:]:
            found = re.search(r"\breagent(?:_|::)(\w+)", word)
            if not found or found.group(1) in MACHINERY:
                continue
            target = found.group(1)
            if target != package and target not in MAY_SEE[package]:
                number = text.count("\n", 0, command.start()) + 1
                yield "%s:%d: %s must not link %s" % (path, number, package, target)


def violations(root):
    for path in sources(root):
        package = package_of(path)
        if not package:
            continue
        with open(os.path.join(root, path), encoding="utf-8") as f:
            text = f.read()
        yield from (check_cmake if path.endswith("CMakeLists.txt") else check_source)(path, text, package)


def self_test():
    base_header = "net/base/include/reagent/base/x.hpp"
    planted = [
        (base_header, "#include <reagent/net/http_client.hpp>\n", "base must not include net"),
        ("providers/model/src/x.cpp", "#include <reagent/net/http_client.hpp>\n", "model must not include net"),
        ("governance/src/x.hpp", "#include <reagent/model/message.hpp>\n", "governance must not include model"),
        ("runtime/agent/src/x.cpp", "  # include <reagent/providers/openai.hpp>\n", "agent must not include providers"),
        ("runtime/agent/src/y.cpp", "#include <reagent/net/http_client.hpp>\n", "agent must not include net"),
        ("builtins/src/x.cpp", "#include <reagent/providers/openai.hpp>\n", "builtins must not include providers"),
        ("tests/support/src/x.cpp", "#include <reagent/agent/agent.hpp>\n", "testing must not include agent"),
        ("net/src/x.cpp", "#include <reagent/reagent.hpp>\n", "net must not include reagent"),
        ("net/src/y.cpp", '#include "../../providers/src/z.hpp"\n', "climbs out"),
        (base_header, "#include <simdjson.h>\n", "must not stand in a public header"),
        ("net/include/reagent/net/x.hpp", "#include <openssl/ssl.h>\n", "must not stand in a public header"),
        ("net/include/reagent/net/x.hpp", "#include <boost/asio/ip/tcp.hpp>\n", "must not stand in a public header"),
        ("net/include/reagent/net/x.hpp", "#include <boost/beast/http.hpp>\n", "must not stand in a public header"),
        ("governance/src/x.hpp", "#include <re2/re2.h>\n", "must not stand in a header"),
        ("net/src/x.cpp", "#include <boost/asio.hpp>\n", "must not stand in any file"),
        (base_header, "using namespace std;\n", "using namespace"),
        ("governance/CMakeLists.txt", "reagent_package(governance\n SOURCES src/x.cpp\n PUBLIC reagent_base reagent_model)\n", "governance must not link model"),
        ("runtime/agent/CMakeLists.txt", "target_link_libraries(reagent_agent PRIVATE reagent::net)\n", "agent must not link net"),
    ]
    clean = [
        (base_header, "#include <reagent/base/error.hpp>\n#include <boost/asio/awaitable.hpp>\n"),
        ("providers/src/x.cpp", "#include <reagent/net/http_client.hpp>\n#include <reagent/model/message.hpp>\n#include <simdjson.h>\n"),
        ("net/CMakeLists.txt", "reagent_package(net\n SOURCES src/x.cpp\n PUBLIC reagent_base\n PRIVATE reagent_boost) # not reagent_agent\n"),
        ("tests/net/x.cpp", "#include <reagent/agent/agent.hpp>\n"),
    ]
    failures = []

    def found_in(files):
        with tempfile.TemporaryDirectory(prefix="layers-") as root:
            for path, text in files:
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            return list(violations(root))

    if found_in(clean):
        failures.append("clean files are blamed: %s" % found_in(clean))
    for path, text, expected in planted:
        found = found_in(clean[1:] + [(path, text)])
        if len(found) != 1 or expected not in found[0]:
            failures.append("%s with %r: expected one `%s`, found %s" % (path, text, expected, found))
    for line in failures:
        print("self-test: " + line)
    print("self-test: %d checks, %d failed" % (len(planted) + 1, len(failures)))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = list(violations(sys.argv[1]))
    for line in found:
        print(line)
    print("%d violations of the layer rule" % len(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
