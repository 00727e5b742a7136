#pragma once
#include <reagent/net/child_process.hpp>

#include <chrono>
#include <cstddef>
#include <utility>

#include <sys/types.h>

namespace reagent::inline v0::net_detail {

/// Owner of a descriptor.
class unique_fd {
public:
    unique_fd() noexcept = default;
    explicit unique_fd(int fd) noexcept : fd_(fd) {}
    unique_fd(unique_fd&& o) noexcept : fd_(o.release()) {}
    unique_fd& operator=(unique_fd&& o) noexcept;
    ~unique_fd() { reset(); }
    void reset() noexcept;
    int release() noexcept { return std::exchange(fd_, -1); }
    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_ = -1;
};

/// A child and its guard with our ends of their pipes. The reaping is the owner's: `kill_and_reap` unless both are reaped.
struct spawned_process {
    pid_t pid = -1;    ///< -1 once reaped
    pid_t guard = -1;  ///< -1 without one, and once reaped
    pid_t group = -1;
    bool killed = false;  ///< the group got its SIGKILL: its number is no longer ours
    unique_fd exit;       ///< pidfd of the child; none when the host reaped it before we could look
    unique_fd guard_exit;
    unique_fd lifetime;  ///< its end tells the guard that we are gone
    unique_fd in, out, err;
    exit_status status;
};

/// Starts guard and child. Throws `spawn_error` and `validation_error`, and leaves nothing then.
spawned_process spawn_process(const process_options& options);
/// SIGKILL to the group, once, while its number is still ours.
void kill_group(spawned_process& p) noexcept;
/// Reaps the child if it has ended and tells whether it has; writes its status.
bool reap_child(spawned_process& p) noexcept;
bool reap_guard(spawned_process& p) noexcept;
/// Kills the group and reaps both; false when one of them did not die within `patience`.
bool kill_and_reap(spawned_process& p, std::chrono::milliseconds patience) noexcept;
/// As write(2), but EPIPE raises no SIGPIPE in this thread, and a SIGPIPE that was pending stays so.
std::ptrdiff_t write_quietly(int fd, const char* bytes, std::size_t size) noexcept;

}  // namespace reagent::inline v0::net_detail
