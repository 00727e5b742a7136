/// What the tests of child processes share: scripts as children, what is left of a process group, and awaits with their results kept.
#pragma once
#include <reagent/net/child_process.hpp>
#include <reagent/testing/run.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <dirent.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reagent::process_tests {

using namespace std::chrono_literals;
namespace rt = reagent::testing;  // `testing` alone is GoogleTest's

inline process_options shell(std::string script)
{
    return process_options({"/bin/sh", "-c", std::move(script)});
}

/// The living members of a process group; a zombie is dead.
inline std::vector<pid_t> members_of(pid_t group)
{
    std::vector<pid_t> out;
    DIR* all = ::opendir("/proc");
    while (const dirent* entry = ::readdir(all)) {
        std::ifstream file("/proc/" + std::string(entry->d_name) + "/stat");
        std::string line;
        if (!std::getline(file, line)) continue;
        const auto after_name = line.rfind(')');
        char state = 0;
        int parent = 0, of = 0;
        if (std::sscanf(line.c_str() + after_name + 1, " %c %d %d", &state, &parent, &of) == 3 && of == group && state != 'Z' && state != 'X')
            out.push_back(std::atoi(entry->d_name));
    }
    ::closedir(all);
    return out;
}

/// Real time, for what the kernel does by itself.
inline bool comes_true(const std::function<bool()>& what, std::chrono::milliseconds limit = 2s)
{
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!what()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        ::poll(nullptr, 0, 1);
    }
    return true;
}

/// A process killed a moment ago may take one to die.
inline bool dies_out(pid_t group)
{
    return comes_true([group] { return members_of(group).empty(); });
}

/// No child of this process, alive or dead.
inline bool no_child_left()
{
    return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

inline awaitable<void> keep(awaitable<exit_status> operation, exit_status* out)
{
    *out = co_await std::move(operation);
}

inline awaitable<void> read_all(child_process* child, std::string* out)
{
    for (;;) {
        const bool more = co_await child->read(*out);
        if (!more) break;
    }
}

inline awaitable<void> read_until(child_process* child, std::string* out, std::string end)
{
    while (out->find(end) == std::string::npos) {
        const bool more = co_await child->read(*out);
        if (!more) throw error(errc::stream_truncated, "the child ended, having said: " + *out);
    }
}

/// All of its output and how it ended.
inline awaitable<void> run_out(child_process* child, std::string* out, exit_status* status)
{
    co_await read_all(child, out);
    *status = co_await child->wait();
}

/// Runs it to its end without input.
inline std::string output_of(process_options options, exit_status* status = nullptr)
{
    asio::io_context io;
    exit_status ended;
    std::string out;
    child_process child(io.get_executor(), std::move(options));
    child.close_input();
    rt::complete(io, run_out(&child, &out, &ended));
    if (status) *status = ended;
    return out;
}

/// Counts the SIGPIPEs delivered while it lives.
class pipe_signals {
public:
    pipe_signals()
    {
        count() = 0;
        struct sigaction handle {};
        handle.sa_handler = [](int) { ++count(); };
        ::sigaction(SIGPIPE, &handle, &before_);
    }
    pipe_signals(const pipe_signals&) = delete;
    pipe_signals& operator=(const pipe_signals&) = delete;
    ~pipe_signals() { ::sigaction(SIGPIPE, &before_, nullptr); }
    int delivered() const { return count(); }

private:
    static int& count()
    {
        static int n = 0;
        return n;
    }
    struct sigaction before_ {};
};

class scratch_directory {
public:
    scratch_directory()
    {
        std::string name = std::filesystem::temp_directory_path() / "reagent-process-XXXXXX";
        path = ::mkdtemp(name.data());
    }
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;
    ~scratch_directory() { std::filesystem::remove_all(path); }
    std::string file(const std::string& name, const std::string& text, bool executable = true) const
    {
        const std::string at = path + "/" + name;
        std::ofstream(at) << text;
        std::filesystem::permissions(at, executable ? std::filesystem::perms::owner_all : std::filesystem::perms::owner_read);
        return at;
    }
    std::string path;
};

}  // namespace reagent::process_tests
