#include "process_spawn.hpp"

#include <reagent/base/untrusted_text.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace reagent::inline v0 {

spawn_error::spawn_error(int os_error, std::string message)
    : error(boost::system::error_code(os_error, boost::system::system_category()), std::move(message)), os_error_(os_error)
{}

std::string spawn_error::code_name() const
{
    const char* name = ::strerrorname_np(os_error_);
    return name && os_error_ != 0 ? name : "ESPAWN";
}

namespace net_detail {
namespace {

// The guard outlives a SIGTERM to its group, for all its signals are blocked. The pause lets a child whose start was under way when we died join the
// group before it is killed.
constexpr const char* guard_script = "read end; /bin/sleep 0.1; kill -9 0";
constexpr const char* default_path = "/usr/local/bin:/usr/bin:/bin";

// The declaration of glibc 2.36 has C++ linkage.
int open_pidfd(pid_t pid)
{
    return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

[[noreturn]] void fail(int os_error, const std::string& what)
{
    throw spawn_error(os_error, "[process] " + what + ": " + std::strerror(os_error));
}

/// A host without standard descriptors must not have ours there: the child's dup2 would take them for its own.
void lift(unique_fd& fd)
{
    if (fd.get() > STDERR_FILENO) return;
    const int up = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (up < 0) fail(errno, "a descriptor for a child process");
    fd = unique_fd(up);
}

struct pipe_ends {
    unique_fd read, write;
};

pipe_ends make_pipe()
{
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno, "a pipe to a child process");
    pipe_ends p{unique_fd(ends[0]), unique_fd(ends[1])};
    lift(p.read);
    lift(p.write);
    return p;
}

void never_block(const unique_fd& fd)
{
    // Of our end alone: pipe2 with O_NONBLOCK would hand it to the child as well.
    if (::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK) != 0) fail(errno, "a pipe to a child process");
}

/// What posix_spawn is told, released whatever happens.
class spawn_plan {
public:
    spawn_plan(pid_t group, bool signals_blocked)
    {
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        sigset_t all, mask;
        ::sigfillset(&all);
        ::sigemptyset(&mask);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setsigmask(&attributes, signals_blocked ? &all : &mask);
        posix_spawnattr_setpgroup(&attributes, group);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~spawn_plan()
    {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    spawn_plan(const spawn_plan&) = delete;
    spawn_plan& operator=(const spawn_plan&) = delete;
    void put(const unique_fd& from, int at) { posix_spawn_file_actions_adddup2(&actions, from.get(), at); }
    void discard(int at, int flags) { posix_spawn_file_actions_addopen(&actions, at, "/dev/null", flags, 0); }
    int run(pid_t& pid, const char* program, char* const* argv, char* const* environment)
    {
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
        return ::posix_spawn(&pid, program, &actions, &attributes, argv, environment);
    }
    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
};

std::vector<char*> pointers(std::vector<std::string>& texts)
{
    std::vector<char*> out;
    for (std::string& t : texts) out.push_back(t.data());
    out.push_back(nullptr);
    return out;
}

std::vector<std::string> environment_of(const process_options& o)
{
    std::map<std::string, std::string> all;
    if (!o.clean_environment) {
        for (char** e = environ; e && *e; ++e) {
            const std::string_view line(*e);
            const auto sign = line.find('=');
            if (sign != std::string_view::npos) all.emplace(line.substr(0, sign), line.substr(sign + 1));
        }
    }
    for (const auto& [name, value] : o.environment) all[name] = value;
    std::vector<std::string> out;
    for (const auto& [name, value] : all) out.push_back(name + "=" + value);
    return out;
}

void check(const process_options& o)
{
    const auto cut = [](const std::string& s) { return s.find('\0') != std::string::npos; };
    if (o.argv.empty() || o.argv.front().empty()) throw validation_error("[process] there is no program to start");
    if (std::any_of(o.argv.begin(), o.argv.end(), cut) || cut(o.directory)) throw validation_error("[process] an argument holds a zero byte");
    for (const auto& [name, value] : o.environment) {
        if (name.empty() || name.find('=') != std::string::npos || cut(name) || cut(value))
            throw validation_error("[process] \"" + untrusted_text(name, 100) + "\" cannot be an environment variable");
    }
}

/// 0 when `path`, seen from the child's directory, is a program, else what is in the way.
int program_error(int directory, const std::string& path)
{
    struct stat found {};
    if (::fstatat(directory, path.c_str(), &found, 0) != 0) return errno;
    if (!S_ISREG(found.st_mode)) return S_ISDIR(found.st_mode) ? EISDIR : EACCES;
    return ::faccessat(directory, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/// posix_spawnp would look in our PATH, and its ENOENT means any of three things.
std::string find_program(int directory, const std::string& name, const std::vector<std::string>& environment)
{
    int why = ENOENT;
    if (name.find('/') != std::string::npos) {
        why = program_error(directory, name);
        if (why == 0) return name;
    } else {
        std::string path = default_path;
        for (const std::string& e : environment) {
            if (e.starts_with("PATH=")) path = e.substr(5);
        }
        for (std::size_t at = 0; at <= path.size();) {
            const std::size_t end = std::min(path.find(':', at), path.size());
            const std::string candidate = end == at ? "./" + name : path.substr(at, end - at) + "/" + name;
            const int in_the_way = program_error(directory, candidate);
            if (in_the_way == 0) return candidate;
            if (in_the_way == EACCES) why = EACCES;
            at = end + 1;
        }
    }
    throw spawn_error(why,
                      "[process] \"" + untrusted_text(name, 200) +
                          "\" cannot be started: " + (why == ENOENT ? "there is no such program" : std::string(std::strerror(why))));
}

void start_guard(spawned_process& p, const log_sink& log)
{
    pipe_ends life = make_pipe();
    spawn_plan plan(0, true);
    plan.put(life.read, STDIN_FILENO);
    plan.discard(STDOUT_FILENO, O_WRONLY);
    plan.discard(STDERR_FILENO, O_WRONLY);
    std::vector<std::string> words{"sh", "-c", guard_script, "reagent-process-guard"};
    char* nothing[] = {nullptr};
    pid_t pid = -1;
    const int failed = plan.run(pid, "/bin/sh", pointers(words).data(), nothing);
    if (failed == ENOENT || failed == EACCES) {
        log(log_level::warn, "[process] /bin/sh cannot be run: a child process will outlive this one when this one is killed");
        return;
    }
    if (failed != 0) fail(failed, "the guard of a child process");
    p.guard = p.group = pid;
    p.guard_exit = unique_fd(open_pidfd(pid));
    if (!p.guard_exit && errno != ESRCH) {
        const int why = errno;
        kill_and_reap(p, std::chrono::milliseconds(100));
        fail(why, "the guard of a child process");
    }
    p.lifetime = std::move(life.write);
}

int left_ms(std::chrono::steady_clock::time_point end)
{
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

bool readable(const unique_fd& fd, std::chrono::steady_clock::time_point end) noexcept
{
    pollfd waiting{fd.get(), POLLIN, 0};
    for (;;) {
        const int n = ::poll(&waiting, 1, left_ms(end));
        if (n > 0) return true;
        if (n == 0 || errno != EINTR) return false;
    }
}

/// Whether it is gone: reaped here, or by the host, whatever then is in `found`.
bool reap(const unique_fd& pidfd, pid_t pid, siginfo_t& found) noexcept
{
    found = siginfo_t();
    int status = 0;
    do
        status = pidfd ? ::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &found, WEXITED | WNOHANG)
                       : ::waitid(P_PID, static_cast<id_t>(pid), &found, WEXITED | WNOHANG);
    while (status != 0 && errno == EINTR);
    return status != 0 ? errno == ECHILD : found.si_pid != 0;
}

}  // namespace

unique_fd& unique_fd::operator=(unique_fd&& o) noexcept
{
    if (this == &o) return *this;
    reset();
    fd_ = o.release();
    return *this;
}

void unique_fd::reset() noexcept
{
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

spawned_process spawn_process(const process_options& o)
{
    check(o);
    unique_fd directory;
    if (!o.directory.empty()) {
        directory = unique_fd(::open(o.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!directory) fail(errno, "the directory " + untrusted_text(o.directory, 200) + " of a child process");
        lift(directory);
    }
    std::vector<std::string> variables = environment_of(o);
    const std::string program = find_program(directory ? directory.get() : AT_FDCWD, o.argv.front(), variables);

    std::vector<std::string> words(o.argv);
    const std::vector<char*> argv = pointers(words), environment = pointers(variables);

    pipe_ends in, out = make_pipe(), err;
    if (o.input) in = make_pipe();
    if (!o.inherit_errors) err = make_pipe();
    never_block(out.read);
    if (in.write) never_block(in.write);
    if (err.read) never_block(err.read);

    spawned_process p;
    if (o.guard) start_guard(p, o.log);
    const bool guarded = p.guard > 0;
    spawn_plan plan(guarded ? p.group : 0, false);
    if (directory) posix_spawn_file_actions_addfchdir_np(&plan.actions, directory.get());
    if (in.read) plan.put(in.read, STDIN_FILENO);
    else plan.discard(STDIN_FILENO, O_RDONLY);
    plan.put(out.write, STDOUT_FILENO);
    if (err.write) plan.put(err.write, STDERR_FILENO);
    const int failed = plan.run(p.pid, program.c_str(), argv.data(), environment.data());
    if (failed != 0) {
        p.pid = -1;
        kill_and_reap(p, std::chrono::milliseconds(100));
        const std::string reason = failed == ENOENT ? "its interpreter is missing" : std::strerror(failed);
        throw spawn_error(failed, "[process] \"" + untrusted_text(o.argv.front(), 200) + "\" cannot be started: " + reason);
    }
    if (!guarded) p.group = p.pid;
    p.exit = unique_fd(open_pidfd(p.pid));
    if (!p.exit) {
        const int why = errno;
        if (why != ESRCH) {
            kill_and_reap(p, std::chrono::milliseconds(100));
            fail(why, "a child process cannot be watched");
        }
        p.pid = -1;
        p.status = exit_status(exit_status::kind::unknown, 0);
    }
    p.in = std::move(in.write);
    p.out = std::move(out.read);
    p.err = std::move(err.read);
    return p;
}

void kill_group(spawned_process& p) noexcept
{
    // Whoever leads the group is not reaped yet, so that its number is not another's.
    if (p.group > 0 && !p.killed && (p.pid > 0 || p.guard > 0)) ::kill(-p.group, SIGKILL);
    p.killed = true;
}

bool reap_child(spawned_process& p) noexcept
{
    if (p.pid < 0) return true;
    siginfo_t found;
    if (!reap(p.exit, p.pid, found)) return false;
    p.pid = -1;
    if (found.si_pid == 0) p.status = exit_status(exit_status::kind::unknown, 0);
    else p.status = exit_status(found.si_code == CLD_EXITED ? exit_status::kind::exited : exit_status::kind::killed, found.si_status);
    return true;
}

bool reap_guard(spawned_process& p) noexcept
{
    if (p.guard < 0) return true;
    siginfo_t found;
    if (!reap(p.guard_exit, p.guard, found)) return false;
    p.guard = -1;
    return true;
}

bool kill_and_reap(spawned_process& p, std::chrono::milliseconds patience) noexcept
{
    kill_group(p);
    p.lifetime.reset();
    const auto end = std::chrono::steady_clock::now() + patience;
    const auto reaped = [end](const unique_fd& pidfd, const auto& try_it) {
        for (;;) {
            const bool last = std::chrono::steady_clock::now() >= end;
            if (try_it()) return true;
            if (last) return false;
            if (pidfd) readable(pidfd, end);
            else ::poll(nullptr, 0, 1);
        }
    };
    const bool child = reaped(p.exit, [&p] { return reap_child(p); });
    const bool guard = reaped(p.guard_exit, [&p] { return reap_guard(p); });
    return child && guard;
}

std::ptrdiff_t write_quietly(int fd, const char* bytes, std::size_t size) noexcept
{
    sigset_t pipe_signal, pending, before;
    ::sigemptyset(&pipe_signal);
    ::sigaddset(&pipe_signal, SIGPIPE);
    ::sigpending(&pending);
    const bool was_pending = ::sigismember(&pending, SIGPIPE) == 1;
    if (!was_pending) ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t n = 0;
    do n = ::write(fd, bytes, size);
    while (n < 0 && errno == EINTR);
    const int failed = errno;
    if (!was_pending) {
        // Raised for this thread while it was blocked: taken back before it can be delivered.
        const timespec at_once{};
        if (n < 0 && failed == EPIPE) {
            while (::sigtimedwait(&pipe_signal, nullptr, &at_once) < 0 && errno == EINTR) {}
        }
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    errno = failed;
    return n;
}

}  // namespace net_detail
}  // namespace reagent::inline v0
