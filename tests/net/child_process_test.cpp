// Children that are real programs: how they start, what they get of us, what they give, and how they end.
#include "process_world.hpp"

#include <reagent/testing/fd_snapshot.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>

namespace {
namespace child_process_test {

using namespace reagent;
using namespace reagent::process_tests;

awaitable<void> feed(child_process* child, std::string bytes)
{
    co_await child->write(bytes);
    child->close_input();
}

TEST(ChildProcess, ThreePipesAndAStatus)
{
    asio::io_context io;
    child_process child(io.get_executor(), shell("cat; echo trouble >&2; exit 3"));
    EXPECT_TRUE(child.guarded());
    std::string out;
    exit_status status;
    rt::started<void> feeding(io, feed(&child, "hello"));
    rt::complete(io, run_out(&child, &out, &status));
    EXPECT_EQ(out, "hello");
    EXPECT_EQ(status, exit_status(exit_status::kind::exited, 3));
    EXPECT_EQ(status.text(), "exited (code 3)");
    EXPECT_EQ(child.error_tail(), "trouble\n");
    EXPECT_TRUE(no_child_left());
    EXPECT_EQ(io.poll(), 0u) << "work is left";
    EXPECT_TRUE(io.stopped());
}

TEST(ChildProcess, HowItEnds)
{
    const std::vector<std::pair<std::string, std::string>> rows = {
        {"exit 0", "exited (code 0)"},
        {"exit 1", "exited (code 1)"},
        {"kill -SEGV $$", "killed (SIGSEGV)"},
        {"kill -KILL $$", "killed (SIGKILL)"},
        // The guard leads the group and blocks what can be blocked.
        {"kill -TERM 0; exec sleep 100", "killed (SIGTERM)"},
        {"kill -KILL 0", "killed (SIGKILL)"},
    };
    for (const auto& [script, text] : rows) {
        for (const bool guard : {true, false}) {
            process_options o = shell(script);
            o.guard = guard;
            exit_status status;
            output_of(std::move(o), &status);
            EXPECT_EQ(status.text(), text) << script;
            EXPECT_TRUE(no_child_left()) << script;
        }
    }
}

TEST(ChildProcess, AProgramThatCannotStartIsToldFromOneThatFails)
{
    const scratch_directory files;
    const std::string plain = files.file("plain", "text", false), broken = files.file("broken", "#!/no/such/interpreter\n"),
                      bare = files.file("bare", "no head\n");
    struct row {
        std::string program, directory;
        int code;
        std::string words;
    };
    const std::vector<row> rows = {
        {"no-such-program-here", "", ENOENT, "there is no such program"},
        {"./nothing", files.path, ENOENT, "there is no such program"},
        {files.path, "", EISDIR, "cannot be started"},
        {plain, "", EACCES, "cannot be started"},
        {broken, "", ENOENT, "its interpreter is missing"},
        {bare, "", ENOEXEC, "cannot be started"},
        {"/bin/true", files.path + "/none", ENOENT, "the directory " + files.path + "/none"},
    };
    asio::io_context io;
    static_cast<void>(child_process(io.get_executor(), shell("exit")));
    const rt::fd_snapshot open = rt::fd_snapshot::take();
    for (const row& r : rows) {
        for (const bool guard : {true, false}) {
            process_options o({r.program, "a secret argument"});
            o.directory = r.directory;
            o.guard = guard;
            try {
                child_process child(io.get_executor(), o);
                ADD_FAILURE() << r.program << " was started";
            } catch (const spawn_error& e) {
                EXPECT_EQ(e.os_error(), r.code) << e.what();
                EXPECT_NE(e.message().find(r.words), std::string::npos) << e.what();
                EXPECT_EQ(e.message().find("secret"), std::string::npos) << e.what();
            }
        }
    }
    EXPECT_EQ(spawn_error(ENOENT, "").code_name(), "ENOENT");
    EXPECT_EQ(spawn_error(0, "").code_name(), "ESPAWN");
    EXPECT_TRUE(no_child_left());
    EXPECT_EQ(open.difference(rt::fd_snapshot::take()), "");
    EXPECT_THROW(child_process(io.get_executor(), process_options({})), validation_error);
    EXPECT_THROW(child_process(io.get_executor(), process_options({"cat", std::string("a\0b", 3)})), validation_error);
    process_options bad = shell("exit");
    bad.environment = {{"A=B", "c"}};
    EXPECT_THROW(child_process(io.get_executor(), bad), validation_error);
}

TEST(ChildProcess, DirectoryAndEnvironmentAreItsOwn)
{
    const scratch_directory files;
    files.file("tool-of-the-child", "#!/bin/sh\necho \"$(pwd) $GREETING\"\n");
    process_options o({"tool-of-the-child"});
    o.directory = files.path;
    o.environment = {{"PATH", files.path + ":/usr/bin:/bin"}, {"GREETING", "first"}, {"GREETING", "hello"}};
    EXPECT_EQ(output_of(o), std::filesystem::canonical(files.path).string() + " hello\n");
    // A relative path starts there too.
    process_options relative({"./tool-of-the-child"});
    relative.directory = files.path;
    EXPECT_EQ(output_of(relative), std::filesystem::canonical(files.path).string() + " \n");
    ::setenv("REAGENT_INHERITED", "yes", 1);
    process_options inherited({"/usr/bin/env"});
    EXPECT_NE(output_of(inherited).find("REAGENT_INHERITED=yes\n"), std::string::npos);
    process_options clean({"/usr/bin/env"});
    clean.clean_environment = true;
    clean.environment = {{"ONE", "1"}};
    EXPECT_EQ(output_of(clean), "ONE=1\n");
    ::unsetenv("REAGENT_INHERITED");
}

TEST(ChildProcess, ItGetsNothingOfOurs)
{
    // Descriptors that our own exec would hand on, a signal ignored and one blocked.
    const int leaking = ::dup2(STDERR_FILENO, 57);
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &before);
    sigset_t blocked, mask;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
    const std::string descriptors = output_of(shell("cd /proc/self/fd && echo *"));
    // 32 and 33 are the C library's own.
    const std::string signals = output_of(shell("sed -n 's/^\\(Sig...\\):.*\\(........\\)$/\\1 \\2/p' /proc/self/status | grep -E '^Sig(Blk|Ign)'"));
    const std::string flags = output_of(shell("grep -h flags /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2"));
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    ::sigaction(SIGPIPE, &before, nullptr);
    ::close(leaking);
    // 3 is the shell's own, on the folder it lists.
    EXPECT_TRUE(descriptors == "0 1 2 3\n" || descriptors == "0 1 2\n") << descriptors;
    EXPECT_TRUE(signals == "SigBlk 00000000\nSigIgn 80000000\n" || signals == "SigBlk 00000000\nSigIgn 00000000\n") << signals;
    std::size_t seen = 0;
    for (std::size_t at = 0; (at = flags.find("flags:\t", at)) != std::string::npos; at += 7, ++seen)
        EXPECT_EQ(std::strtol(flags.c_str() + at + 7, nullptr, 8) & O_NONBLOCK, 0) << flags;
    EXPECT_EQ(seen, 3u) << flags;
    process_options silent = shell("cat; cat /dev/stdin; echo end");
    silent.input = false;
    EXPECT_EQ(output_of(silent), "end\n");
    EXPECT_EQ(output_of(shell("cat /dev/stdin; echo end")), "end\n");  // a socket could not be opened there
}

TEST(ChildProcess, AHostWithoutStandardDescriptors)
{
    // In a process of its own, which ends with 0 when all is well.
    const pid_t host = ::fork();
    if (host == 0) {
        for (int fd = 0; fd < 3; ++fd) ::close(fd);
        bool good = false;
        try {
            asio::io_context io;
            std::string out;
            exit_status status;
            child_process child(io.get_executor(), shell("cat; echo hello; echo trouble >&2"));
            rt::started<void> feeding(io, feed(&child, "in "));
            rt::complete(io, run_out(&child, &out, &status));
            good = out == "in hello\n" && child.error_tail() == "trouble\n" && status.success();
        } catch (...) {
            good = false;
        }
        ::_exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(host, &status, 0), host);
    EXPECT_EQ(status, 0);
}

TEST(ChildProcess, TheLadderOfAStop)
{
    struct row {
        const char* script;
        int rungs;  ///< graces that pass
        const char* status;
    };
    const std::vector<row> rows = {
        {"echo ready; cat", 0, "exited (code 0)"},
        {"echo ready; exec sleep 1000", 1, "killed (SIGTERM)"},
        {"trap '' TERM; echo ready; while :; do sleep 1000; done", 2, "killed (SIGKILL)"},
    };
    for (const row& r : rows) {
        asio::io_context io;
        const auto clock = std::make_shared<rt::manual_clock>();
        process_options o = shell(r.script);
        o.clock = clock;
        child_process child(io.get_executor(), o);
        std::string out;
        exit_status status;
        rt::complete(io, read_until(&child, &out, "ready"));
        const steady_time start = clock->now();
        rt::started<void> stopping(io, keep(child.stop(), &status));
        rt::started<void> again(io, keep(child.stop(), &status));
        const duration due[] = {150ms, 450ms};
        for (int rung = 0; rung < r.rungs; ++rung) {
            ASSERT_TRUE(rt::run_until(io, [&] { return clock->armed() == 2 && clock->next() == start + due[rung]; })) << r.script;
            EXPECT_EQ(child.status().text(), "running") << r.script;
            clock->advance_to(clock->next());
        }
        ASSERT_TRUE(rt::run_until(io, [&] { return stopping.done() && again.done(); })) << r.script;
        EXPECT_EQ(status.text(), r.status) << r.script;
        EXPECT_TRUE(dies_out(child.group())) << r.script;
        EXPECT_TRUE(no_child_left()) << r.script;
    }
}

// A wrapper with a grandchild that ignores SIGTERM; it tells when the trap is set.
constexpr const char* wrapper = "(trap '' TERM; echo ready; while :; do sleep 1000; done) & wait";

TEST(ChildProcess, AGraceMayBeAsLongAsTime)
{
    asio::io_context io;
    process_options o({"/bin/cat"});
    o.close_grace = o.term_grace = duration::max();
    child_process child(io.get_executor(), std::move(o));
    exit_status status;
    rt::complete(io, keep(child.stop(), &status));
    EXPECT_EQ(status.text(), "exited (code 0)");
}

TEST(ChildProcess, Case_D2_TheWholeTreeEndsWithAStop)
{
    // The wrapper dies of SIGTERM itself, or leaves by itself: the group gets its SIGKILL all the same.
    for (const bool leaves : {false, true}) {
        asio::io_context io;
        child_process child(io.get_executor(), shell(leaves ? "(trap '' TERM; echo ready; while :; do sleep 1000; done) & read line" : wrapper));
        std::string out;
        exit_status status;
        rt::complete(io, read_until(&child, &out, "ready"));
        EXPECT_GE(members_of(child.group()).size(), 3u);
        const pid_t group = child.group();
        rt::complete(io, keep(child.stop(), &status));
        EXPECT_NE(status.text(), "running");
        EXPECT_TRUE(dies_out(group)) << "leaves: " << leaves;
        EXPECT_TRUE(no_child_left());
    }
}

TEST(ChildProcess, Case_D2_TheWholeTreeEndsWithItsOwner)
{
    for (const bool guard : {true, false}) {
        asio::io_context io;
        pid_t group = 0;
        {
            process_options o = shell(wrapper);
            o.guard = guard;
            child_process child(io.get_executor(), o);
            std::string out;
            rt::complete(io, read_until(&child, &out, "ready"));
            group = child.group();
        }
        EXPECT_TRUE(no_child_left());
        EXPECT_TRUE(dies_out(group));
    }
}

TEST(ChildProcess, Case_D2_TheWholeTreeEndsWhenWeAreKilled)
{
    // The orphans come to us instead of process 1, which in a container may reap nobody.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    int report[2];
    ASSERT_EQ(::pipe2(report, O_CLOEXEC), 0);
    const pid_t host = ::fork();
    if (host == 0) {
        asio::io_context io;
        child_process child(io.get_executor(), shell(wrapper));
        std::string out;
        rt::complete(io, read_until(&child, &out, "ready"));
        const pid_t group = child.group();
        if (::write(report[1], &group, sizeof group) != sizeof group) ::_exit(1);
        for (;;) ::pause();
    }
    ::close(report[1]);
    pid_t group = 0;
    ASSERT_EQ(::read(report[0], &group, sizeof group), static_cast<ssize_t>(sizeof group));
    ::close(report[0]);
    EXPECT_GE(members_of(group).size(), 3u);
    ::kill(host, SIGKILL);
    ASSERT_EQ(::waitpid(host, nullptr, 0), host);
    EXPECT_TRUE(dies_out(group)) << members_of(group).size() << " processes outlive the one that started them";
    comes_true([] { return ::waitpid(-1, nullptr, WNOHANG) < 0; });
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    EXPECT_TRUE(no_child_left());
}

TEST(ChildProcess, Case_D3_AThousandCyclesLeaveNothing)
{
    const scratch_directory files;
    const std::string broken = files.file("broken", "#!/no/such/interpreter\n");
    asio::io_context io;
    static_cast<void>(child_process(io.get_executor(), shell("exit")));
    const rt::fd_snapshot open = rt::fd_snapshot::take();
    for (int i = 0; i < 1000; ++i) {
        std::string out;
        exit_status status;
        switch (i % 5) {
        case 0: {  // ends by itself
            child_process child(io.get_executor(), process_options({"/bin/true"}));
            rt::complete(io, run_out(&child, &out, &status));
            ASSERT_TRUE(status.success());
            break;
        }
        case 1: {  // is stopped
            child_process child(io.get_executor(), process_options({"/bin/cat"}));
            rt::complete(io, keep(child.stop(), &status));
            break;
        }
        case 2: {  // loses its owner
            child_process child(io.get_executor(), process_options({"/bin/cat"}));
            break;
        }
        case 3:  // fails when its guard stands already
            EXPECT_THROW(child_process(io.get_executor(), process_options({broken})), spawn_error);
            break;
        default: {  // is killed from outside and replaced by the next
            child_process child(io.get_executor(), process_options({"/bin/cat"}));
            ::kill(child.id(), SIGKILL);
            child = child_process(io.get_executor(), process_options({"/bin/true"}));
            rt::complete(io, keep(child.wait(), &status));
        }
        }
        if (io.stopped()) io.restart();
    }
    EXPECT_TRUE(no_child_left());
    EXPECT_EQ(open.difference(rt::fd_snapshot::take()), "");
}

TEST(ChildProcess, AHostThatTakesTheStatus)
{
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGCHLD, &ignore, &before);
    exit_status status, stopped;
    EXPECT_EQ(output_of(shell("echo here; exit 3"), &status), "here\n");
    {
        asio::io_context io;
        child_process child(io.get_executor(), process_options({"/bin/cat"}));
        rt::complete(io, keep(child.stop(), &stopped));
    }
    ::sigaction(SIGCHLD, &before, nullptr);
    EXPECT_EQ(status.text(), "exited (status unknown)");
    EXPECT_EQ(stopped.text(), "exited (status unknown)");
}

TEST(ChildProcess, StandardErrorIsBoundedAndNeverBlocks)
{
    asio::io_context io;
    process_options o = shell("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo -n end >&2; echo done");
    o.error_tail = 1000;
    child_process child(io.get_executor(), o);
    std::string out;
    exit_status status;
    rt::complete(io, run_out(&child, &out, &status));
    EXPECT_EQ(out, "done\n");
    EXPECT_EQ(child.error_bytes(), 1000003u);
    EXPECT_EQ(child.error_tail(), std::string(997, 'x') + "end");
}

TEST(ChildProcess, ReadingGoesOnWhileAWriteBlocks)
{
    // It reads nothing before it has said more than its pipe holds.
    asio::io_context io;
    child_process child(io.get_executor(), shell("head -c 1000000 /dev/zero | tr '\\0' o; cat | wc -c"));
    std::string out;
    exit_status status;
    rt::started<void> feeding(io, feed(&child, std::string(1'000'000, 'i')));
    rt::complete(io, run_out(&child, &out, &status));
    EXPECT_EQ(out, std::string(1'000'000, 'o') + "1000000\n");
    EXPECT_NO_THROW(feeding.get());
}

TEST(ChildProcess, TheEndOfTheProcessIsTheEndOfItsOutput)
{
    // One that left the group holds the pipe on.
    asio::io_context io;
    child_process child(io.get_executor(), shell("setsid sh -c 'echo $$; exec sleep 1000' & read line; echo last"));
    std::string out;
    exit_status status;
    rt::complete(io, read_until(&child, &out, "\n"));
    child.close_input();
    rt::started<void> writing(io, feed(&child, std::string(1'000'000, 'i')));
    rt::complete(io, run_out(&child, &out, &status));
    EXPECT_NE(out.find("last\n"), std::string::npos);
    EXPECT_TRUE(rt::run_until(io, [&] { return writing.done(); }));
    EXPECT_THROW(writing.get(), error);
    const pid_t escaped = std::atoi(out.c_str());
    ASSERT_GT(escaped, 1);
    EXPECT_EQ(::kill(escaped, SIGKILL), 0) << "it should have escaped";
}

TEST(ChildProcess, OperationsAfterTheEndFailByName)
{
    asio::io_context io;
    std::string out;
    exit_status status;
    auto child = std::make_unique<child_process>(io.get_executor(), process_options({"/bin/cat"}));
    rt::started<void> reading(io, read_all(child.get(), &out));
    rt::started<void> waiting(io, keep(child->wait(), &status));
    rt::run_until_idle(io);
    child.reset();
    EXPECT_TRUE(rt::run_until(io, [&] { return reading.done() && waiting.done(); }));
    try {
        reading.get();
        ADD_FAILURE() << "the read ended well";
    } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::closed) << e.what();
    }
    EXPECT_EQ(status.text(), "killed (SIGKILL)");
}

TEST(ChildProcess, Case_D12_AWriteToADeadChildRaisesNothing)
{
    const pipe_signals pipes;
    const rt::signal_snapshot signals = rt::signal_snapshot::take();
    asio::io_context io;
    {
        // It closes its input and lives, so that the write itself meets the closed pipe.
        child_process child(io.get_executor(), shell("exec 0<&-; echo ready; exec sleep 1000"));
        std::string out;
        rt::complete(io, read_until(&child, &out, "ready"));
        try {
            rt::complete(io, feed(&child, "hello"));
            ADD_FAILURE() << "the write succeeded";
        } catch (const error& e) {
            EXPECT_EQ(e.code(), errc::transport_failed);
            EXPECT_NE(e.message().find("no longer reads"), std::string::npos) << e.what();
        }
        // One that was pending before stays so.
        sigset_t pipe_signal, mask, pending;
        ::sigemptyset(&pipe_signal);
        ::sigaddset(&pipe_signal, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &mask);
        ::raise(SIGPIPE);
        EXPECT_THROW(rt::complete(io, feed(&child, "hello")), error);
        ::sigpending(&pending);
        EXPECT_EQ(::sigismember(&pending, SIGPIPE), 1);
        EXPECT_EQ(pipes.delivered(), 0);
        ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
        EXPECT_EQ(pipes.delivered(), 1) << "the host's own";
    }
    EXPECT_EQ(signals.difference(rt::signal_snapshot::take()), "");
    EXPECT_EQ(pipes.delivered(), 1);
}

}  // namespace child_process_test
}  // namespace
