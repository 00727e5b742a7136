#include <reagent/model/attempt_log.hpp>

#include <algorithm>
#include <cmath>

namespace reagent::inline v0 {

std::string_view to_string(attempt_end e) noexcept
{
    switch (e) {
    case attempt_end::open: return "open";
    case attempt_end::answered: return "answered";
    case attempt_end::resent: return "resent";
    case attempt_end::failed: return "failed";
    case attempt_end::cancelled: return "cancelled";
    case attempt_end::refused: return "refused";
    case attempt_end::cached: return "cached";
    case attempt_end::shared: return "shared";
    }
    return {};
}

json attempt_record::to_json() const
{
    const auto milliseconds = [](std::chrono::nanoseconds d) { return std::round(static_cast<double>(d.count()) / 1e3) / 1e3; };
    json out = json::object().set("provider", provider);
    if (!model.empty()) out.set("model", model);
    out.set("outcome", to_string(end));
    if (status != 0) out.set("status", status);
    if (error) out.set("error", error.message());
    out.set("waitedMs", milliseconds(waited)).set("durationMs", milliseconds(duration));
    return out;
}

json to_json(std::span<const attempt_record> records)
{
    json out = json::array();
    for (const attempt_record& r : records) out.push_back(r.to_json());
    return out;
}

attempt_log::attempt_log(clock_ptr clock) : clock_(std::move(clock)), idle_since_(clock_->now()) {}

unsigned attempt_log::attempts() const noexcept
{
    return static_cast<unsigned>(std::ranges::count_if(records_, &attempt_record::left));
}

std::size_t attempt_log::open(std::string provider, std::string model)
{
    const steady_time now = clock_->now();
    attempt_record r;
    r.provider = std::move(provider);
    r.model = std::move(model);
    r.waited = now - idle_since_;
    records_.push_back(std::move(r));
    opened_.push_back(now);
    return records_.size() - 1;
}

void attempt_log::settle(std::size_t place, int status) noexcept
{
    records_[place].status = status;
    idle_since_ = clock_->now();
    records_[place].duration = idle_since_ - opened_[place];
}

void attempt_log::close(std::size_t place, attempt_end end, error_code error) noexcept
{
    attempt_record& r = records_[place];
    if (r.end != attempt_end::open) return;
    r.end = end;
    r.error = error;
}

void attempt_log::note(std::string provider, std::string model, attempt_end end, error_code error)
{
    const std::size_t place = open(std::move(provider), std::move(model));
    close(place, end, error);
}

}  // namespace reagent::inline v0
