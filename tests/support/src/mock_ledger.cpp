#include "mock_ledger.hpp"

#include <algorithm>

namespace reagent::inline v0::testing_detail {

usd mock_ledger::rounded_up(cost c)
{
    const cost nanos = (c + 999'999) / 1'000'000;
    return usd::from_nanos(static_cast<std::int64_t>(std::min<cost>(nanos, INT64_MAX)));
}

void mock_ledger::connected()
{
    const std::lock_guard guard(lock_);
    ++stats_.connections;
}

bool mock_ledger::would_lead(std::uint64_t worst_input, std::uint64_t worst_output) const
{
    const std::lock_guard guard(lock_);
    return open_ + answered_ + price(worst_input, worst_output) > max_;
}

void mock_ledger::arrived(const std::shared_ptr<mock_entry>& entry, bool chat)
{
    {
        const std::lock_guard guard(lock_);
        if (chat) {
            ++stats_.requests;
            open_ += price(entry->worst_input, entry->worst_output);
            max_ = std::max(max_, open_ + answered_);
            stats_.max_open = std::max(stats_.max_open, ++stats_.open);
            stats_.exposure = rounded_up(open_ + answered_);
            stats_.max_exposure = rounded_up(max_);
            entry->open = stats_.open;
            entry->exposure = stats_.exposure;
            if (!entry->fault.empty()) ++stats_.faults[entry->fault];
        }
        keep(entry);
    }
    changed_cv_.notify_all();
}

void mock_ledger::keep(const std::shared_ptr<mock_entry>& entry)
{
    journal_.push_back(entry);
    journal_bytes_ += entry->body.size();
    if (journal_.size() > max_journal_) {
        journal_bytes_ -= journal_.front()->body.size();
        journal_.pop_front();
    }
    // A request that is still open is read from its body.
    for (auto e = journal_.begin(); journal_bytes_ > max_journal_bytes_ && e != journal_.end(); ++e) {
        mock_entry& old = **e;
        if (old.end == "open" || old.body.empty()) continue;
        old.body_bytes = old.body.size();
        journal_bytes_ -= old.body_bytes;
        std::string().swap(old.body);
        old.body_dropped = true;
    }
}

void mock_ledger::ended(const std::shared_ptr<mock_entry>& entry, bool chat, std::uint64_t told_input, std::uint64_t told_output, const char* how,
                        std::size_t sent, double duration_ms)
{
    {
        const std::lock_guard guard(lock_);
        entry->input_tokens = told_input;
        entry->output_tokens = told_output;
        entry->end = how;
        entry->sent = sent;
        entry->duration_ms = duration_ms;
        if (chat) {
            open_ -= price(entry->worst_input, entry->worst_output);
            answered_ += price(told_input, told_output);
            stats_.exposure = rounded_up(open_ + answered_);
            --stats_.open;
            ++(entry->end == "complete" ? stats_.answered : stats_.cut);
            stats_.input_tokens += told_input;
            stats_.output_tokens += told_output;
        }
    }
    changed_cv_.notify_all();
}

mock_stats mock_ledger::stats() const
{
    const std::lock_guard guard(lock_);
    return stats_;
}

std::vector<mock_entry> mock_ledger::journal() const
{
    const std::lock_guard guard(lock_);
    std::vector<mock_entry> out;
    out.reserve(journal_.size());
    for (const auto& e : journal_) out.push_back(*e);
    return out;
}

bool mock_ledger::wait_until(const std::function<bool(const mock_stats&)>& seen, std::chrono::milliseconds limit) const
{
    std::unique_lock guard(lock_);
    return changed_cv_.wait_for(guard, limit, [&] { return seen(stats_); });
}

}  // namespace reagent::inline v0::testing_detail

namespace reagent::inline v0::testing {

json mock_entry::to_json() const
{
    json head = json::object();
    for (const auto& [name, value] : headers) head.set(name, value);
    json j = json::object();
    j.set("sequence", sequence).set("connection", connection).set("arrival_ms", arrival_ms).set("duration_ms", duration_ms);
    j.set("method", method).set("path", path).set("headers", std::move(head));
    auto parsed = json::parse(body);
    j.set("body", parsed ? std::move(*parsed) : json(body)).set("body_bytes", body_dropped ? body_bytes : body.size());
    if (body_dropped) j.set("body_dropped", true);
    j.set("model", model).set("stream", stream).set("fixture", fixture < 0 ? json() : json(fixture)).set("fault", fault.empty() ? json() : json(fault));
    j.set("worst_input_tokens", worst_input).set("worst_output_tokens", worst_output);
    j.set("input_tokens", input_tokens).set("output_tokens", output_tokens);
    j.set("open", open).set("exposure_usd", exposure.to_double());
    j.set("status", status).set("sent_bytes", sent).set("end", end);
    return j;
}

json mock_stats::to_json() const
{
    json f = json::object();
    for (const auto& [name, n] : faults) f.set(name, n);
    json j = json::object();
    j.set("connections", connections).set("requests", requests).set("answered", answered).set("cut", cut).set("open", open).set("max_open", max_open);
    j.set("input_tokens", input_tokens).set("output_tokens", output_tokens);
    j.set("exposure_usd", exposure.to_double()).set("max_exposure_usd", max_exposure.to_double()).set("faults", std::move(f));
    return j;
}

}  // namespace reagent::inline v0::testing
