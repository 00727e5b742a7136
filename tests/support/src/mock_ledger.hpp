/// The mock's books: journal entries, counts, and the exposure judged at each arrival. Thread safe.
#pragma once
#include <reagent/testing/mock_server.hpp>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

namespace reagent::inline v0::testing_detail {

using testing::mock_entry;
using testing::mock_stats;

class mock_ledger {
public:
    mock_ledger(usd input_rate, usd output_rate, std::size_t max_journal, std::size_t max_journal_bytes)
        : input_rate_(input_rate.nanos()), output_rate_(output_rate.nanos()), max_journal_(max_journal), max_journal_bytes_(max_journal_bytes)
    {}

    void connected();
    std::uint64_t next_sequence() { return ++sequence_; }
    /// Whether a request with these bounds would set a new maximum: then the caller looks for clients that have gone first.
    bool would_lead(std::uint64_t worst_input, std::uint64_t worst_output) const;
    /// A chat request counts for the exposure and as open; another is only journalled.
    void arrived(const std::shared_ptr<mock_entry>& entry, bool chat);
    /// Settles what `arrived` opened. `told_*` is the usage that reached the client.
    void ended(const std::shared_ptr<mock_entry>& entry, bool chat, std::uint64_t told_input, std::uint64_t told_output, const char* how, std::size_t sent,
               double duration_ms);

    mock_stats stats() const;
    std::vector<mock_entry> journal() const;
    bool wait_until(const std::function<bool(const mock_stats&)>& seen, std::chrono::milliseconds limit) const;

private:
    // Nano-dollars a million tokens, times tokens: exact, and beyond 64 bits.
    __extension__ using cost = __int128;
    cost price(std::uint64_t input, std::uint64_t output) const { return static_cast<cost>(input) * input_rate_ + static_cast<cost>(output) * output_rate_; }
    static usd rounded_up(cost c);
    void keep(const std::shared_ptr<mock_entry>& entry);

    std::int64_t input_rate_, output_rate_;
    std::size_t max_journal_, max_journal_bytes_, journal_bytes_ = 0;
    std::uint64_t sequence_ = 0;
    mutable std::mutex lock_;
    mutable std::condition_variable changed_cv_;
    mock_stats stats_;
    cost open_ = 0, answered_ = 0, max_ = 0;
    std::deque<std::shared_ptr<mock_entry>> journal_;
};

}  // namespace reagent::inline v0::testing_detail
