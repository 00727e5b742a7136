// Does starting a child process cost more when we are large? The median of 200 starts each with 10 MB and with 1 GB of touched memory; a fork would
// copy the page tables. Exit status 1 when the second is more than twice the first.
//
//     process_cost [starts]
#include "bench_common.hpp"

#include <reagent/net/child_process.hpp>

#include <boost/asio/io_context.hpp>

#include <memory>

#include <sys/mman.h>

namespace {

constexpr std::size_t small_memory = 10u * 1000 * 1000, large_memory = 1000u * 1000 * 1000;
constexpr double limit_ratio = 2;

/// Memory of ours of which every page is there.
class touched_memory {
public:
    explicit touched_memory(std::size_t size) : size_(size), at_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        if (at_ == MAP_FAILED) {
            std::fprintf(stderr, "process_cost: no %zu bytes of memory\n", size);
            std::exit(2);
        }
        // Small pages, as a heap has that grew: they are what a fork copies the tables of.
        ::madvise(at_, size, MADV_NOHUGEPAGE);
        std::memset(at_, 1, size);
    }
    touched_memory(const touched_memory&) = delete;
    touched_memory& operator=(const touched_memory&) = delete;
    ~touched_memory() { ::munmap(at_, size_); }

private:
    std::size_t size_;
    void* at_;
};

struct outcome {
    double start_us = 0;  ///< median
    long rss_kb = 0;
};

outcome measure(std::size_t memory, int starts)
{
    const touched_memory ours(memory);
    outcome o;
    o.rss_kb = bench::status_kb("VmRSS:");
    boost::asio::io_context io(1);
    std::vector<std::int64_t> took;
    for (int i = 0; i < starts; ++i) {
        const std::int64_t began = bench::monotonic_ns();
        const reagent::child_process child(io.get_executor(), reagent::process_options({"/bin/true"}));
        took.push_back(bench::monotonic_ns() - began);
    }
    std::nth_element(took.begin(), took.begin() + starts / 2, took.end());
    o.start_us = static_cast<double>(took[static_cast<std::size_t>(starts / 2)]) / 1000;
    return o;
}

}  // namespace

int main(int argc, char** argv)
{
    const int starts = argc > 1 ? std::atoi(argv[1]) : 200;
    if (starts < 10) {
        std::fprintf(stderr, "usage: process_cost [starts]      (at least 10)\n");
        return 2;
    }
    measure(small_memory, starts / 10);  // the programs come into the page cache
    const outcome small = measure(small_memory, starts), large = measure(large_memory, starts);
    const double ratio = large.start_us / small.start_us;
    std::printf("{\"bench\":\"process_cost\",\"starts\":%d,\"small_rss_kb\":%ld,\"large_rss_kb\":%ld,\"small_start_us\":%.0f,\"large_start_us\":%.0f,"
                "\"ratio\":%.2f,"
                "\"limit_ratio\":%.0f}\n",
                starts, small.rss_kb, large.rss_kb, small.start_us, large.start_us, ratio, limit_ratio);
    return ratio < limit_ratio ? 0 : 1;
}
