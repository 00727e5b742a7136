#include "child_process.hpp"

#include <reagent/base/error.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace reagent_app {
namespace {

[[noreturn]] void fail(const std::string& what, int code) { throw reagent::error(reagent::errc::transport_failed, what + ": " + std::strerror(code)); }

/// What posix_spawn is told, released whatever happens.
class spawn_plan {
public:
    spawn_plan()
    {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
    }
    ~spawn_plan()
    {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    spawn_plan(const spawn_plan&) = delete;
    spawn_plan& operator=(const spawn_plan&) = delete;
    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
};

bool wait_readable(int fd, int timeout_ms)
{
    pollfd waiting{fd, POLLIN, 0};
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
        const int n = ::poll(&waiting, 1, left > 0 ? static_cast<int>(left) : 0);
        if (n > 0) return true;
        if (n == 0 || errno != EINTR) return false;
    }
}

}  // namespace

child_process::child_process(const std::vector<std::string>& arguments)
{
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("a pipe to a child process", errno);
    output_ = ends[0];

    const std::string parent = std::to_string(::getpid());
    std::vector<char*> argv;
    std::string name = "reagent", option(die_with_parent_option), value = parent;
    argv.push_back(name.data());
    argv.push_back(option.data());
    argv.push_back(value.data());
    std::vector<std::string> copies(arguments);
    for (std::string& a : copies) argv.push_back(a.data());
    argv.push_back(nullptr);

    spawn_plan plan;
    posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&plan.actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&plan.actions, 3);
    sigset_t none, usual;
    sigemptyset(&none);
    sigfillset(&usual);
    posix_spawnattr_setsigmask(&plan.attributes, &none);
    posix_spawnattr_setsigdefault(&plan.attributes, &usual);
    posix_spawnattr_setpgroup(&plan.attributes, 0);
    posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const int failed = ::posix_spawn(&pid_, "/proc/self/exe", &plan.actions, &plan.attributes, argv.data(), environ);
    ::close(ends[1]);
    if (failed) {
        pid_ = -1;
        ::close(output_);
        fail("this program cannot be started as a child process", failed);
    }
}

child_process::~child_process() { stop(); }

std::string child_process::read_line(int timeout_ms)
{
    for (;;) {
        if (const auto end = pending_.find('\n'); end != std::string::npos) {
            std::string line = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            return line;
        }
        if (pending_.size() > 65536) throw reagent::error(reagent::errc::limit_exceeded, "a child process wrote a line without end");
        if (!wait_readable(output_, timeout_ms)) throw reagent::error(reagent::errc::deadline, "a child process said nothing for " + std::to_string(timeout_ms) + " ms");
        char piece[4096];
        const ssize_t n = ::read(output_, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw reagent::error(reagent::errc::closed, "a child process ended before it was ready");
        pending_.append(piece, static_cast<std::size_t>(n));
    }
}

void child_process::stop() noexcept
{
    if (output_ >= 0) ::close(output_);
    output_ = -1;
    if (pid_ < 0) return;
    // Nothing of it is worth a farewell: it holds no state and would only speak up on our standard error.
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = -1;
}

void die_with_parent(long parent)
{
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) std::_Exit(1);
}

}  // namespace reagent_app
