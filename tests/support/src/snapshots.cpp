#include <reagent/testing/fd_snapshot.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

namespace reagent::inline v0::testing {

namespace {

std::string missing_in(const std::map<int, std::string>& wanted, const std::map<int, std::string>& from)
{
    std::string out;
    for (const auto& [fd, target] : wanted) {
        if (const auto at = from.find(fd); at != from.end() && at->second == target) continue;
        out += (out.empty() ? "" : ", ") + std::to_string(fd) + " -> " + target;
    }
    return out;
}

}  // namespace

fd_snapshot fd_snapshot::take()
{
    fd_snapshot s;
    DIR* dir = ::opendir("/proc/self/fd");
    if (dir == nullptr) return s;
    const int own = ::dirfd(dir);
    while (const dirent* e = ::readdir(dir)) {
        if (e->d_name[0] == '.') continue;
        const int fd = std::atoi(e->d_name);
        if (fd == own) continue;
        std::array<char, 256> target{};
        const ssize_t n = ::readlinkat(own, e->d_name, target.data(), target.size());
        if (n > 0) s.open_.emplace(fd, std::string(target.data(), static_cast<std::size_t>(n)));
    }
    ::closedir(dir);
    return s;
}

std::string fd_snapshot::added(const fd_snapshot& now) const
{
    return missing_in(now.open_, open_);
}

std::string fd_snapshot::difference(const fd_snapshot& now) const
{
    const std::string more = added(now), less = missing_in(open_, now.open_);
    return (more.empty() ? "" : "open now: " + more + "\n") + (less.empty() ? "" : "closed now: " + less + "\n");
}

signal_snapshot signal_snapshot::take()
{
    signal_snapshot s;
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    s.entries_.resize(static_cast<std::size_t>(SIGRTMAX) + 1);
    for (int n = 1; n <= SIGRTMAX; ++n) {
        entry& e = s.entries_[static_cast<std::size_t>(n)];
        struct sigaction action;
        std::memset(&action, 0, sizeof action);
        if (::sigaction(n, nullptr, &action) != 0) continue;
        static_assert(sizeof action.sa_handler == sizeof e.handler);
        std::memcpy(&e.handler, &action.sa_handler, sizeof e.handler);
        // The C library's own mark on every handler it installs, kept when the default is put back.
        constexpr int sa_restorer = 0x04000000;
        e.flags = action.sa_flags & ~sa_restorer;
        for (int m = 1; m <= SIGRTMAX; ++m) e.mask += ::sigismember(&action.sa_mask, m) == 1 ? '1' : '0';
        e.blocked = ::sigismember(&blocked, n) == 1;
    }
    return s;
}

std::string signal_snapshot::difference(const signal_snapshot& now) const
{
    std::string out;
    for (std::size_t n = 1; n < entries_.size(); ++n) {
        if (entries_[n] == now.entries_[n]) continue;
        const char* name = ::sigabbrev_np(static_cast<int>(n));
        out += "signal " + std::to_string(n) + (name != nullptr ? std::string(" SIG") + name : std::string()) +
            (entries_[n].blocked != now.entries_[n].blocked ? ": blocked differently\n" : ": handled differently\n");
    }
    return out;
}

}  // namespace reagent::inline v0::testing
