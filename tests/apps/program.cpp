#include "program.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reagent::apps_test {
namespace {

constexpr std::chrono::seconds longest_run(120), longest_wait(30);

class pipe_ends {
public:
    pipe_ends()
    {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
        read = ends[0];
        write = ends[1];
    }
    int read = -1, write = -1;
};

/// Reads what is there; whether the end has not come.
bool drain(int fd, std::string& into)
{
    char piece[65536];
    const ssize_t n = ::read(fd, piece, sizeof piece);
    if (n > 0) into.append(piece, static_cast<std::size_t>(n));
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

void close_if_open(int& fd)
{
    if (fd >= 0) ::close(fd);
    fd = -1;
}

}  // namespace

std::vector<std::string> program_result::messages() const
{
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < err.size();) {
        const std::size_t end = std::min(err.find('\n', at), err.size());
        lines.push_back(err.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

program::~program()
{
    if (pid_ > 0) {
        ::kill(-pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    for (int* fd : {&in_, &out_, &err_}) close_if_open(*fd);
}

void program::start()
{
    // A socket pair for the input: writing to a program that has ended raises no SIGPIPE with MSG_NOSIGNAL.
    int input_ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input_ends) != 0) throw std::runtime_error("no socket pair");
    const pipe_ends out, err;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input_ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);

    std::vector<std::string> words = arguments_;
    const std::string executable = executable_.empty() ? REAGENT_PROGRAM : executable_;
    words.insert(words.begin(), executable);
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    for (const char* name : {"PATH", "HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS"})
        if (const char* value = std::getenv(name); value && !environment_.contains(name)) environment_[name] = value;
    std::vector<std::string> pairs;
    for (const auto& [name, value] : environment_) pairs.push_back(name + "=" + value);
    std::vector<char*> envp;
    for (std::string& p : pairs) envp.push_back(p.data());
    envp.push_back(nullptr);

    const int failed = ::posix_spawnp(&pid_, executable.c_str(), &actions, &attributes, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    ::close(input_ends[1]);
    ::close(out.write);
    ::close(err.write);
    in_ = input_ends[0];
    out_ = out.read;
    err_ = err.read;
    if (failed) throw std::runtime_error("cannot start " + executable);
}

bool program::pump(std::chrono::steady_clock::time_point until)
{
    pollfd waiting[3];
    nfds_t n = 0;
    if (in_ >= 0 && input_.empty() && input_ends_) close_if_open(in_);
    for (const int fd : {out_, err_})
        if (fd >= 0) waiting[n++] = pollfd{fd, POLLIN, 0};
    if (n == 0) return false;
    if (in_ >= 0 && !input_.empty()) waiting[n++] = pollfd{in_, POLLOUT, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0 || ::poll(waiting, n, static_cast<int>(left)) <= 0) return false;
    for (nfds_t i = 0; i < n; ++i) {
        if (waiting[i].revents == 0) continue;
        if (waiting[i].fd == out_) {
            if (!drain(out_, result_.out)) close_if_open(out_);
        } else if (waiting[i].fd == err_) {
            if (!drain(err_, result_.err)) close_if_open(err_);
        } else {
            const ssize_t sent = ::send(in_, input_.data(), std::min<std::size_t>(input_.size(), 65536), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent >= 0) input_.erase(0, static_cast<std::size_t>(sent));
            else if (errno != EAGAIN && errno != EINTR) input_.clear();
        }
    }
    return true;
}

program_result program::wait()
{
    const auto until = std::chrono::steady_clock::now() + longest_run;
    while (pump(until)) {}
    if (std::chrono::steady_clock::now() >= until) ::kill(-pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result_;
}

program_result program::run()
{
    start();
    return wait();
}

bool program::wait_for(const std::string& where, const std::string& text)
{
    const auto until = std::chrono::steady_clock::now() + longest_wait;
    while (where.find(text) == std::string::npos)
        if (!pump(until)) return false;
    return true;
}
bool program::wait_for_output(const std::string& text)
{
    return wait_for(result_.out, text);
}
bool program::wait_for_messages(const std::string& text)
{
    return wait_for(result_.err, text);
}

void program::signal(int number) const
{
    ::kill(pid_, number);
}

program_result reagent_run(std::vector<std::string> arguments, std::string input)
{
    program p(std::move(arguments));
    p.input(std::move(input));
    return p.run();
}

scratch_file::scratch_file(std::string_view content, std::string_view suffix)
{
    const char* directory = std::getenv("TMPDIR");
    path_ = std::string(directory && *directory ? directory : "/tmp") + "/reagent-test-XXXXXX" + std::string(suffix);
    const int fd = ::mkostemps(path_.data(), static_cast<int>(suffix.size()), O_CLOEXEC);
    if (fd < 0 || ::write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size())) throw std::runtime_error("cannot write " + path_);
    ::close(fd);
}
scratch_file::~scratch_file()
{
    ::unlink(path_.c_str());
}

namespace {

std::vector<std::string> mock_arguments(const std::string& fixtures, std::vector<std::string> more)
{
    std::vector<std::string> all{"mock", "--port", "0", "--fixtures", fixtures};
    for (std::string& m : more) all.push_back(std::move(m));
    return all;
}

}  // namespace

mock_process::mock_process(std::string_view fixtures, std::vector<std::string> more)
    : fixtures_(fixtures), mock_(mock_arguments(fixtures_.path(), std::move(more)))
{
    mock_.start();
    if (!mock_.wait_for_output("\n")) throw std::runtime_error("the mock did not start: " + mock_.wait().err);
    const std::string& greeting = mock_.output();
    base_url_ = greeting.substr(greeting.rfind(' ') + 1);
    base_url_.pop_back();
}
mock_process::~mock_process() = default;

}  // namespace reagent::apps_test
