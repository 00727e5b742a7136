#include <reagent/agent/run_request.hpp>

namespace reagent::inline v0 {

run_request& run_request::budget(reagent::budget b) &
{
    budget_ = std::move(b);
    return *this;
}

run_request& run_request::deadline(duration from_start) &
{
    deadline_ = from_start;
    return *this;
}

run_request& run_request::max_tokens(std::uint64_t n) &
{
    options_.max_tokens = n;
    return *this;
}

run_request& run_request::options(generate_options o) &
{
    // `max_tokens` set before stays unless the new options bring their own.
    if (o.max_tokens.value_or(0) == 0) o.max_tokens = options_.max_tokens;
    options_ = std::move(o);
    return *this;
}

run_request& run_request::tools(std::vector<tool> list) &
{
    tools_ = std::move(list);
    thunk_ = nullptr;
    return *this;
}

run_request& run_request::tools(tool_thunk each_round) &
{
    thunk_ = std::move(each_round);
    tools_.reset();
    return *this;
}

run_request& run_request::system(std::string text) &
{
    system_ = std::move(text);
    return *this;
}

run_request& run_request::on_events(std::function<void(const event_batch&)> sink) &
{
    on_events_ = std::move(sink);
    return *this;
}

run_request& run_request::id(std::string run_id) &
{
    id_ = std::move(run_id);
    return *this;
}

}  // namespace reagent::inline v0
