/// What the measuring clients share: their flags, CPU and memory accounting, latency samples and the one JSON line they print.
#pragma once
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

inline std::int64_t monotonic_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

/// The mock stamps every response and event with `created` = this base + CLOCK_MONOTONIC in ns: always sixteen digits.
constexpr std::int64_t stamp_base = 1'000'000'000'000'000LL;
constexpr int stamp_digits = 16;

/// User plus system time of this process, in microseconds.
inline double cpu_time_us()
{
    rusage r;
    getrusage(RUSAGE_SELF, &r);
    return static_cast<double>(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 + static_cast<double>(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/// A line of /proc/self/status in kB, e.g. `VmRSS:`; -1 when it is not there.
inline long status_kb(std::string_view key)
{
    long value = -1;
    if (FILE* f = std::fopen("/proc/self/status", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, f)) {
            if (std::string_view(line).starts_with(key)) value = std::atol(line + key.size());
        }
        std::fclose(f);
    }
    return value;
}

/// Tens of thousands of sockets need the hard limit.
inline void raise_descriptor_limit()
{
    rlimit r;
    getrlimit(RLIMIT_NOFILE, &r);
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

/// `--port P --n N --dur S --warm S --sse --tls`; the variable parts of a client's command line.
struct client_flags {
    int port = 9000;
    int in_flight = 64;
    double warm_s = 1, duration_s = 3;
    bool sse = false, tls = false;

    client_flags(int argc, char** argv)
    {
        for (int i = 1; i < argc; ++i) {
            const std::string_view flag = argv[i];
            const bool more = i + 1 < argc;
            if (flag == "--sse") sse = true;
            else if (flag == "--tls") tls = true;
            else if (flag == "--port" && more) port = std::atoi(argv[++i]);
            else if (flag == "--n" && more) in_flight = std::atoi(argv[++i]);
            else if (flag == "--warm" && more) warm_s = std::atof(argv[++i]);
            else if (flag == "--dur" && more) duration_s = std::atof(argv[++i]);
            else {
                std::fprintf(stderr, "usage: %s [--port P] [--n IN_FLIGHT] [--dur S] [--warm S] [--sse] [--tls]\n", argv[0]);
                std::exit(2);
            }
        }
        raise_descriptor_limit();
    }
};

/// Counts calls between the end of the warm-up and the end of the run. The window opens and closes at the completion of a call, so both the
/// CPU time and the count belong to whole calls.
class measurement {
public:
    measurement(const client_flags& flags, const char* client) : flags_(flags), client_(client), idle_rss_kb_(status_kb("VmRSS:"))
    {
        latency_us_.reserve(max_samples);
        const std::int64_t now = monotonic_ns();
        warm_until_ = now + static_cast<std::int64_t>(flags.warm_s * 1e9);
        end_ = warm_until_ + static_cast<std::int64_t>(flags.duration_s * 1e9);
    }

    bool finished() const noexcept { return state_ == state::over; }
    bool measuring() const noexcept { return state_ == state::measuring; }

    /// A response or event that carried this `created` stamp has been read.
    void stamp(std::int64_t created)
    {
        if (measuring()) sample(static_cast<float>(monotonic_ns() - (created - stamp_base)) / 1000.f);
    }
    void sample(float microseconds)
    {
        if (measuring() && latency_us_.size() < max_samples) latency_us_.push_back(microseconds);
    }
    void count_events(std::uint64_t n) noexcept { events_ += n; }

    void call_done()
    {
        const std::int64_t now = monotonic_ns();
        if (state_ == state::warming && now >= warm_until_) {
            state_ = state::measuring;
            began_ = now;
            cpu_began_us_ = cpu_time_us();
            events_ = 0;
            latency_us_.clear();
        } else if (state_ == state::measuring) {
            ++calls_;
            if (now >= end_) close(now);
        }
    }
    void call_failed()
    {
        if (++errors_ > max_errors) close(monotonic_ns());
    }

    /// One JSON line on standard output.
    void print()
    {
        const double seconds = static_cast<double>(closed_ - began_) / 1e9;
        const double calls = static_cast<double>(calls_);
        std::sort(latency_us_.begin(), latency_us_.end());
        std::printf("{\"client\":\"%s\",\"mode\":\"%s\",\"tls\":%d,\"n\":%d,\"rps\":%.1f,\"cpu_us\":%.2f,\"cpu_pct\":%.0f,\"ev_s\":%.0f,\"rss_mb\":%.1f,"
                    "\"rss_kb_per\":%.2f,\"p50_us\":%.0f,\"p99_us\":%.0f,\"errs\":%llu}\n",
                    client_, flags_.sse ? "sse" : "json", flags_.tls ? 1 : 0, flags_.in_flight, calls / seconds, calls_ ? cpu_us_ / calls : 0,
                    cpu_us_ / seconds / 1e4, static_cast<double>(events_) / seconds, static_cast<double>(peak_rss_kb_) / 1024,
                    static_cast<double>(peak_rss_kb_ - idle_rss_kb_) / flags_.in_flight, quantile(.5), quantile(.99), static_cast<unsigned long long>(errors_));
        std::fflush(stdout);
    }

private:
    enum class state { warming, measuring, over };
    static constexpr std::size_t max_samples = 1 << 21;
    static constexpr std::uint64_t max_errors = 1'000'000;

    void close(std::int64_t now)
    {
        state_ = state::over;
        closed_ = now;
        cpu_us_ = cpu_time_us() - cpu_began_us_;
        peak_rss_kb_ = status_kb("VmHWM:");
    }
    double quantile(double q) const
    {
        return latency_us_.empty() ? 0 : static_cast<double>(latency_us_[static_cast<std::size_t>(q * static_cast<double>(latency_us_.size() - 1))]);
    }

    const client_flags& flags_;
    const char* client_;
    state state_ = state::warming;
    std::int64_t warm_until_ = 0, end_ = 0, began_ = 0, closed_ = 0;
    double cpu_began_us_ = 0, cpu_us_ = 0;
    std::uint64_t calls_ = 0, events_ = 0, errors_ = 0;
    long idle_rss_kb_, peak_rss_kb_ = 0;
    std::vector<float> latency_us_;
};

constexpr std::string_view model_name = "gpt-4o-mini";
constexpr std::string_view system_text = "You are a helpful assistant.";
inline std::string user_text()
{
    std::string text;
    for (int i = 0; i < 40; ++i) text += "some words ";
    return text;
}

/// The body every client sends.
inline std::string request_body(bool sse)
{
    std::string body = "{\"model\":\"";
    body.append(model_name).append("\",\"stream\":").append(sse ? "true" : "false");
    body.append(",\"messages\":[{\"role\":\"system\",\"content\":\"").append(system_text);
    body.append("\"},{\"role\":\"user\",\"content\":\"").append(user_text()).append("\"}],\"temperature\":0.7}");
    return body;
}

}  // namespace bench
