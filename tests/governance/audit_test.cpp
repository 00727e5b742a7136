#include "audit_file.hpp"
#include "audit_line.hpp"
#include "gate_bench.hpp"

#include <reagent/base/utf8.hpp>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {
namespace audit_test {

using namespace gate_bench;
namespace gd = reagent::governance_detail;

/// A fresh directory, gone with its files at the end.
class directory {
public:
    directory()
    {
        char name[] = "/tmp/reagent_audit_XXXXXX";
        path = ::mkdtemp(name);
    }
    ~directory()
    {
        ::chmod(path.c_str(), 0700);
        for (const std::string& f : files) ::unlink(f.c_str());
        for (const char* sub : {"/a/b", "/a", ""}) ::rmdir((path + sub).c_str());
    }
    std::string file(const std::string& name)
    {
        files.push_back(path + '/' + name);
        return files.back();
    }
    std::string path;
    std::vector<std::string> files;
};

std::string contents(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

mode_t mode_of(const std::string& path)
{
    struct stat s {};
    EXPECT_EQ(::stat(path.c_str(), &s), 0) << path;
    return s.st_mode & 07777;
}

json line_of(json action, json result = json::object())
{
    return json::object()
        .set("ts", "2026-01-01T00:00:00.000Z")
        .set("seq", 1)
        .set("run_id", "r")
        .set("phase", "record")
        .set("action", std::move(action))
        .set("result", std::move(result));
}

TEST(AuditLog, FilesAndDirectoriesAreForTheOwnerOnly)
{
    directory d;
    const std::string path = d.file("a/b/run.jsonl");
    const audit_log log = audit_log::file(path);
    log.write({json::object().set("phase", "gate")});
    EXPECT_EQ(mode_of(path), 0600u);
    EXPECT_EQ(mode_of(d.path + "/a"), 0700u);
    EXPECT_EQ(mode_of(d.path + "/a/b"), 0700u);
    EXPECT_EQ(log.path(), path);
}

TEST(AuditLog, AppendsAndStampsAndReadsBack)
{
    directory d;
    const std::string path = d.file("run.jsonl");
    {
        const audit_log log = audit_log::file(path);
        log.write({json::object().set("n", 1), json::object().set("ts", "as given").set("n", 2)});
    }
    const audit_log log = audit_log::file(path);
    log.write({json::object().set("n", 3)});
    const std::vector<json> lines = log.read();
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0].as_object()[0].first, "ts");
    EXPECT_EQ(lines[0]["ts"].as_string().size(), 24u);
    EXPECT_EQ(lines[1]["ts"].as_string(), "as given");
    EXPECT_EQ(lines[2]["n"].get_int64(), 3);
}

TEST(AuditLog, AnEmptyHandleWritesNothing)
{
    const audit_log none;
    EXPECT_FALSE(none);
    none.write({json::object()});
    EXPECT_TRUE(none.read().empty());
    EXPECT_FALSE(none.clock());
}

TEST(AuditLog, UnusablePathsAreConfigurationErrors)
{
    directory d;
    const auto failure = [](const std::string& path) -> std::string {
        try {
            audit_log::file(path);
        } catch (const config_error& e) {
            return e.what();
        }
        return "no error";
    };
    EXPECT_TRUE(failure("").starts_with("audit.path: "));
    EXPECT_EQ(failure(d.path), "audit.path: " + d.path + " is not a regular file");
    const std::string pipe = d.file("pipe");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(failure(pipe), "audit.path: " + pipe + " is not a regular file");
    EXPECT_TRUE(failure(pipe + "/x").starts_with("audit.path: cannot open " + pipe + "/x: ")) << failure(pipe + "/x");
    if (::geteuid() != 0) {
        ::chmod(d.path.c_str(), 0500);
        EXPECT_TRUE(failure(d.path + "/a/x").starts_with("audit.path: cannot make the directory " + d.path + "/a: "));
        EXPECT_TRUE(failure(d.path + "/x").starts_with("audit.path: cannot open " + d.path + "/x: "));
    }
    EXPECT_TRUE(failure("/proc/no/such/x").starts_with("audit.path: cannot make the directory /proc/no: "));
}

TEST(AuditLog, HostileStringsStayOnOneLine)
{
    directory d;
    const audit_log log = audit_log::file(d.file("run.jsonl"));
    const std::string hostile = std::string("a\nb\r\n\0c\"\\\x7f", 11) + "\xff\xfe\xed\xa0\x80\xe2\x80\xa8{\"phase\":\"gate\"}\n";
    for (int i = 0; i < 3; ++i) log.write({line_of(json::object().set(hostile, hostile).set("type", hostile))});
    std::size_t skipped = 9;
    const std::vector<json> lines = log.read(&skipped);
    EXPECT_EQ(lines.size(), 3u);
    EXPECT_EQ(skipped, 0u);
    const std::string bytes = contents(log.path());
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), 3);
    EXPECT_TRUE(is_utf8(bytes));
    EXPECT_TRUE(lines[0]["action"]["type"].as_string().starts_with(std::string("a\nb\r\n\0c\"\\", 9)));
}

TEST(AuditLog, NoSecretReachesTheSink)
{
    directory d;
    for (const audit_log& log : {audit_log::in_memory(), audit_log::file(d.file("run.jsonl"))}) {
        log.write({line_of(json::object().set("type", "http").set("args", json::object().set("apiKey", "hunter2").set("h", "Bearer hunter2")),
                           json::object().set("result", "https://me:hunter2@host/"))
                       .set("reason", "sk-hunter2hunter2hunter2")});
        const std::vector<json> lines = log.read();
        ASSERT_EQ(lines.size(), 1u);
        EXPECT_EQ(lines[0].dump().find("hunter2"), std::string::npos) << lines[0].dump();
    }
}

TEST(AuditLog, ATornLineIsSkippedCountedAndClosed)
{
    directory d;
    const std::string path = d.file("run.jsonl");
    std::ofstream(path) << "{\"n\":1}\nnot json\n[1]\n{\"n\":2,\"to";  // the writer died
    const audit_log log = audit_log::file(path);
    log.write({json::object().set("n", 3)});
    std::size_t skipped = 0;
    const std::vector<json> lines = log.read(&skipped);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[1]["n"].get_int64(), 3) << "the next line did not glue itself to the torn one";
    EXPECT_EQ(skipped, 3u);
}

TEST(AuditLog, ReadingAFileThatIsGoneIsAnError)
{
    directory d;
    const std::string path = d.file("run.jsonl");
    const audit_log log = audit_log::file(path);
    ::unlink(path.c_str());
    EXPECT_THROW(log.read(), error);
}

// ---- lines that are too long

TEST(AuditLine, S34LongFieldsAreCut)
{
    json line =
        line_of(json::object().set("type", "bash").set("cmd", std::string(5000, 'x')), json::object().set("rows", json(json::array_type(100, json("abc")))));
    const std::string text = gd::fit_line(line, audit_log::max_line_bytes);
    EXPECT_LE(text.size(), 3500u);
    EXPECT_TRUE(text.ends_with("\n"));
    const json back = json::parse_or_throw(text, "line");
    EXPECT_EQ(back["_truncated"].get_bool(), true);
    EXPECT_EQ(back["action"]["cmd"].as_string(), std::string(200, 'x') + "[TRUNCATED]");
    EXPECT_EQ(back["result"]["rows"].as_string(), "[TRUNCATED:601 bytes]");
    EXPECT_EQ(back["action"]["type"].as_string(), "bash");
}

TEST(AuditLine, S35ManyFieldsBecomeASummary)
{
    json action = json::object().set("type", "llm");
    for (int i = 0; i < 200; ++i) action.set("k" + std::to_string(i), std::string(190, 'y'));
    const std::size_t bytes = action.dump().size();
    const json back = json::parse_or_throw(gd::fit_line(line_of(action, json::object().set("costUsd", 0.5)), 3500), "line");
    EXPECT_EQ(back["action"].dump(), R"({"_truncated":true,"bytes":)" + std::to_string(bytes) + R"(,"type":"llm"})");
    EXPECT_EQ(back["result"].dump(), R"({"costUsd":0.5})");
}

TEST(AuditLine, TheLargerBodyGoesFirstAndSpendStays)
{
    json result = json::object().set("costUsd", 0.25).set("tokens", 12).set("pricing", "priced").set("counts", json::object().set("writes", 1));
    for (int i = 0; i < 100; ++i) result.set("k" + std::to_string(i), std::string(150, 'y'));
    json action = json::object().set("type", "bash").set("cmd", "ls");
    const json back = json::parse_or_throw(gd::fit_line(line_of(action, result), 3500), "line");
    EXPECT_EQ(back["action"].dump(), R"({"type":"bash","cmd":"ls"})") << "cutting the larger one was enough";
    EXPECT_EQ(back["result"]["costUsd"].get_double(), 0.25);
    EXPECT_EQ(back["result"]["tokens"].get_int64(), 12);
    EXPECT_EQ(back["result"]["counts"].dump(), R"({"writes":1})");
    EXPECT_FALSE(back["result"].find("k0"));
}

TEST(AuditLine, S36CutsBetweenCharacters)
{
    std::string han;
    for (int i = 0; i < 5000; ++i) append_utf8(han, 0x6F22);
    bench t;
    directory d;
    gate_options o = t.options(false);
    o.audit = audit_log::file(d.file("run.jsonl"), t.time);
    run_gate gate(gate_policy().deny_tools({"*"}), {}, std::move(o));
    const decision verdict = t.check(gate, kind(han.c_str()));
    EXPECT_FALSE(verdict.allowed());
    const std::string bytes = contents(d.files[0]);
    EXPECT_LE(bytes.size(), 3500u);
    EXPECT_TRUE(is_utf8(bytes));
    const json back = json::parse_or_throw(bytes, "line");
    EXPECT_LE(back["reason"].as_string().size(), 211u);
    EXPECT_EQ(back["rule"].as_string(), "tools.denylist");
}

TEST(AuditLine, BodiesThatAreNoObjectsAreCutToo)
{
    const json back = json::parse_or_throw(gd::fit_line(line_of(json(std::string(4000, 'z')), json(json::array_type(2000, json(1)))), 3500), "line");
    EXPECT_EQ(back["action"].as_string(), std::string(200, 'z') + "[TRUNCATED]");
    EXPECT_EQ(back["result"].as_string(), "[TRUNCATED:4001 bytes]");
}

TEST(AuditLine, ThirdStepKeepsScalarsAndTheCore)
{
    json line = line_of(json::object().set("type", std::string(150, 't')), json::object().set("costUsd", 2));
    line.set("aid", "deadbeef").set("decision", "deny").set("rule", "r").set("newCap", 5).set("meta", json::object().set("m", std::string(4000, 'm')));
    for (int i = 0; i < 60; ++i) line.set("extra" + std::to_string(i), std::string(100 + static_cast<std::size_t>(i), 'e'));
    const std::string text = gd::fit_line(line, 3500);
    EXPECT_LE(text.size(), 3500u);
    const json back = json::parse_or_throw(text, "line");
    EXPECT_EQ(back["_dropped"].as_string(), "oversize");
    EXPECT_GT(back["_dropped_keys"].get_int64().value_or(0), 10);
    EXPECT_GT(back["_dropped_bytes"].get_int64().value_or(0), 1000);
    EXPECT_EQ(back["action"]["type"].as_string(), std::string(120, 't'));
    EXPECT_EQ(back["result"]["costUsd"].get_int64(), 2);
    EXPECT_FALSE(back.find("meta"));
    EXPECT_FALSE(back.find("extra20")) << "the first of the longest";
    EXPECT_TRUE(back.find("extra0"));
    for (const char* core : {"ts", "seq", "run_id", "phase", "decision", "rule", "aid", "newCap"}) EXPECT_TRUE(back.find(core)) << core;
}

TEST(AuditLine, LastResort)
{
    const json line = line_of(json::object().set("type", "x")).set("run_id", std::string(9000, 'r'));
    const json back = json::parse_or_throw(gd::fit_line(line, 200), "line");
    EXPECT_EQ(back.dump(), R"({"ts":"2026-01-01T00:00:00.000Z","seq":1,"run_id":")" + std::string(120, 'r') + R"(","_dropped_core":true})");
}

TEST(AuditLine, EverySizeAroundTheLimitFits)
{
    for (std::size_t n = 3300; n < 3600; ++n) {
        json action = json::object();
        for (std::size_t left = n, i = 0; left > 0; ++i) {
            const std::size_t part = std::min<std::size_t>(left, 180);
            action.set("k" + std::to_string(i), std::string(part, 'v'));
            left -= part;
        }
        const std::string text = gd::fit_line(line_of(action), 3500);
        ASSERT_LE(text.size(), 3500u) << n;
        ASSERT_EQ(json::parse_or_throw(text, "line")["_truncated"].get_bool().value_or(false), line_of(action).dump().size() + 1 > 3500) << n;
    }
}

// ---- writes that fail

int calls;
ssize_t fail_then_work(int fd, const iovec* v, int n)
{
    if (calls++ == 0) {
        errno = EINTR;
        return -1;
    }
    return ::writev(fd, v, n);
}
ssize_t disk_full(int, const iovec*, int)
{
    errno = ENOSPC;
    return -1;
}
ssize_t half_once(int fd, const iovec* v, int n)
{
    if (calls++ > 0) return ::writev(fd, v, n);
    return ::write(fd, v[0].iov_base, v[0].iov_len / 2);
}
ssize_t first_line_once(int fd, const iovec* v, int n)
{
    if (calls++ > 0) return ::writev(fd, v, n);
    return ::write(fd, v[0].iov_base, 8);
}

int open_new(const std::string& path)
{
    return ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

TEST(AuditFile, AShortWriteIsAnErrorAndTheNextLineStartsAnew)
{
    directory d;
    const std::string path = d.file("run.jsonl");
    calls = 0;
    gd::audit_file file(open_new(path), path, false, &half_once);
    try {
        file.append("{\"n\":1}\n");
        FAIL();
    } catch (const error& e) {
        EXPECT_TRUE(e.code() == errc::audit_failed);
        EXPECT_NE(std::string(e.what()).find(path), std::string::npos);
        EXPECT_NE(std::string(e.what()).find("4 of 8 bytes"), std::string::npos) << e.what();
    }
    file.append("{\"n\":2}\n");
    file.append("{\"n\":3}\n");
    EXPECT_EQ(contents(path), "{\"n\"\n{\"n\":2}\n{\"n\":3}\n");
}

TEST(AuditFile, AWriteThatEndsAtALineLeavesNothingTorn)
{
    directory d;
    const std::string path = d.file("run.jsonl");
    calls = 0;
    gd::audit_file file(open_new(path), path, false, &first_line_once);
    EXPECT_THROW(file.append("{\"n\":1}\n{\"n\":2}\n"), error);
    file.append("{\"n\":3}\n");
    EXPECT_EQ(contents(path), "{\"n\":1}\n{\"n\":3}\n");
}

TEST(AuditFile, FailuresNameTheFileAndInterruptionsAreRepeated)
{
    directory d;
    const std::string path = d.file("run.jsonl");
    gd::audit_file full(open_new(path), path, false, &disk_full);
    try {
        full.append("x\n");
        FAIL();
    } catch (const error& e) {
        EXPECT_TRUE(e.code() == errc::audit_failed);
        EXPECT_EQ(std::string(e.what()), "[Audit] cannot write " + path + ": No space left on device");
    }
    calls = 0;
    gd::audit_file file(open_new(path), path, false, &fail_then_work);
    file.append("y\n");
    EXPECT_EQ(contents(path), "y\n");
}

int writes;
ssize_t counting(int fd, const iovec* v, int n)
{
    ++writes;
    return ::writev(fd, v, n);
}

TEST(AuditFile, ManyLinesAreOneWrite)
{
    directory d;
    const std::string path = d.file("run.jsonl");
    writes = 0;
    gd::audit_file file(open_new(path), path, true, &counting);
    file.append("1\n2\n3\n");
    EXPECT_EQ(writes, 1);
    file.append("");
    EXPECT_EQ(writes, 1);
    EXPECT_EQ(contents(path), "\n1\n2\n3\n");
}

TEST(AuditGate, AFailedWriteIsAnErrorOfTheCheck)
{
    ASSERT_EQ(::access("/dev/full", W_OK), 0);
    bench t;
    budget money("b", usd("1"));
    gate_options o = t.options(false);
    o.audit = audit_log::file("/dev/full");
    run_gate gate({}, money, std::move(o));
    try {
        t.check(gate, kind("x"));
        FAIL() << "an allow without its line is no allow";
    } catch (const error& e) {
        EXPECT_TRUE(e.code() == errc::audit_failed);
    }
    EXPECT_THROW(t.get(gate.admit(action::llm("m"), budget_amount(usd("0.5")))), error);
    EXPECT_EQ(money.state().reserved.cost, usd()) << "nor does it hold money";
    EXPECT_THROW(gate.record(kind("x"), json::object(), ""), error);
}

TEST(AuditGate, ARoundOfRecordsIsOneWriteInOrder)
{
    bench t;
    directory d;
    gate_options o = t.options(false);
    o.audit = audit_log::file(d.file("run.jsonl"), t.time);
    const audit_log log = o.audit;
    run_gate gate({}, {}, std::move(o));
    std::vector<record_entry> round;
    for (const char* aid : {"aaaaaaaa", "bbbbbbbb"}) round.emplace_back(kind("x"), costs(0), aid);
    gate.record(round);
    const std::vector<json> lines = log.read();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0]["aid"].as_string(), "aaaaaaaa");
    EXPECT_EQ(lines[1]["seq"].get_int64(), 2);
}

TEST(AuditGate, SignalDispositionsStayAsTheyAre)
{
    struct sigaction before[32], after[32];
    for (int s = 1; s < 32; ++s) ::sigaction(s, nullptr, &before[s]);
    {
        directory d;
        bench t;
        gate_options o = t.options(false);
        o.audit = audit_log::file(d.file("run.jsonl"));
        run_gate gate(gate_policy().max_turns(3), budget("b", usd("1")), std::move(o));
        t.check(gate, kind("x"));
    }
    for (int s = 1; s < 32; ++s) {
        ::sigaction(s, nullptr, &after[s]);
        EXPECT_EQ(before[s].sa_handler, after[s].sa_handler) << s;
    }
}

}  // namespace audit_test
}  // namespace
