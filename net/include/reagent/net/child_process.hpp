#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/log_sink.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace reagent::inline v0 {

/// What to start and how.
class process_options {
public:
    /// `arguments[0]` is the program: a path (relative ones from `directory`), or a name looked up in the PATH of the child.
    explicit process_options(std::vector<std::string> arguments) : argv(std::move(arguments)) {}

    std::vector<std::string> argv;
    std::string directory;                                         ///< empty: ours
    std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours; the later of one name wins
    bool clean_environment = false;                                ///< `environment` alone
    bool input = true;                                             ///< a pipe; else the child reads /dev/null
    bool inherit_errors = false;                                   ///< standard error is ours instead of drained
    bool guard = true;                                             ///< the group dies with us (see `child_process`)
    std::size_t error_tail = 64 * 1024;                            ///< bytes of standard error that are kept
    duration close_grace = std::chrono::milliseconds(150);         ///< `stop`: between closing its input and SIGTERM
    duration term_grace = std::chrono::milliseconds(300);          ///< `stop`: between SIGTERM and SIGKILL
    clock_ptr clock;                                               ///< null: the system clock
    log_sink log;
};

/// How a process ended.
class exit_status {
public:
    enum class kind : unsigned char {
        running,  ///< it has not ended
        exited,   ///< `value` is its exit code
        killed,   ///< `value` is the signal that ended it
        unknown,  ///< the host took its status: it ignores SIGCHLD or waits for all children
    };
    exit_status() noexcept = default;
    exit_status(kind how, int value) noexcept : how_(how), value_(value) {}
    kind how() const noexcept { return how_; }
    int value() const noexcept { return value_; }
    bool success() const noexcept { return how_ == kind::exited && value_ == 0; }
    /// `exited (code 1)`, `killed (SIGKILL)`, `exited (status unknown)`, `running`.
    std::string text() const;
    friend bool operator==(const exit_status&, const exit_status&) = default;

private:
    kind how_ = kind::running;
    int value_ = 0;
};

/// The program could not be started at all: nothing of it ever ran. Told from a program that starts and fails at once.
class spawn_error : public error {
public:
    spawn_error(int os_error, std::string message);
    int os_error() const noexcept { return os_error_; }
    /// `ENOENT`, `EACCES`, …; `ESPAWN` for a number without a name.
    std::string code_name() const;

private:
    int os_error_;
};

/// A child process in a process group of its own: three pipes, no other descriptor of ours, no signal setting of ours. Standard error is always drained
/// and its tail kept. No SIGCHLD handler and no SIGPIPE: the exit comes by pidfd.
///
/// The group ends with the process: when the child has exited, what it left running in its group is killed before the exit is reported. It also ends with
/// us, however we end: the leader of the group is a guard, a shell that waits for the end of a pipe we hold and then kills the group. A process that
/// leaves the group (`setsid`) escapes both. A host that forks without exec hands the pipe on, which puts the guard off until that process ends too. Without
/// /bin/sh there is no guard, which the log says.
///
/// Lives on its executor, which must not outlive its context; while the process runs it counts as work there. Shared: unsafe. Destroying it kills the
/// group and reaps the process at once, which blocks for the moment that takes; `stop` is the polite end.
class child_process {
public:
    /// Starts it, which blocks until the program is loaded. Throws `spawn_error`, and `validation_error` for arguments that cannot be passed on.
    /// The environment of the process is read: no thread may change it meanwhile.
    child_process(any_io_executor ex, process_options options);
    child_process(child_process&&) noexcept;
    child_process& operator=(child_process&&) noexcept;
    ~child_process();

    /// Appends what has come on standard output, up to 64 KiB a call; false at its end. When the process has ended that is the end of what is in the
    /// pipe, whoever else may hold it. Not reading is back-pressure. One reader at a time; `to` must live until the await ends.
    /// Errors: `transport_failed`, `closed` after destruction. Cancellation: terminal, total.
    awaitable<bool> read(std::string& to);
    /// Writes all of `bytes`, which must live until the await ends, to standard input. One writer at a time. Errors: `transport_failed` when the process
    /// no longer reads, `closed` after `close_input`. Cancellation: terminal; any part may have been written.
    awaitable<void> write(std::string_view bytes);
    /// The end of its input. Idempotent.
    void close_input() noexcept;
    /// Waits until the process has ended and is reaped, its group killed. Read its output meanwhile, or it may never end.
    /// Cancellation: terminal, total; the process goes on.
    awaitable<exit_status> wait();
    /// Ends it: closes its input, waits, SIGTERM to the group, waits, SIGKILL to the group, reaps. Idempotent. Cancellation hurries it to SIGKILL; it
    /// still completes with the status.
    awaitable<exit_status> stop();
    /// Sends a signal to the group; nothing once the process has ended.
    void signal(int number) noexcept;

    pid_t id() const noexcept;
    /// The process group; its leader is the guard, or the process itself without one.
    pid_t group() const noexcept;
    /// Whether the guard stands.
    bool guarded() const noexcept;
    /// `running` until the process was reaped.
    exit_status status() const noexcept;
    /// The last bytes of standard error.
    std::string error_tail() const;
    /// Bytes of standard error seen in all.
    std::uint64_t error_bytes() const noexcept;

private:
    struct impl;
    static awaitable<bool> read_body(std::shared_ptr<impl> self, std::string& to);
    static awaitable<void> write_body(std::shared_ptr<impl> self, std::string_view bytes);
    static awaitable<exit_status> wait_body(std::shared_ptr<impl> self);
    static awaitable<exit_status> stop_body(std::shared_ptr<impl> self);
    static awaitable<void> climb(std::shared_ptr<impl> self);
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0
