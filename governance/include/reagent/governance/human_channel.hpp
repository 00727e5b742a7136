#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/json.hpp>
#include <reagent/governance/action.hpp>

#include <functional>
#include <optional>
#include <string>

namespace reagent::inline v0 {

/// A question to a person (spec/governance.md §1.1, §3).
class human_event {
public:
    bool halt = false;  ///< kind: halt, else ask
    reagent::action subject;
    severity level = severity::action;
    std::string rule, reason;
    json context;       ///< §3.4
};
enum class human_verdict : std::uint8_t { allow, deny, topup, terminate, none };
class human_answer {
public:
    human_answer() = default;
    explicit human_answer(human_verdict v) : verdict(v) {}
    human_verdict verdict = human_verdict::none;
    std::optional<double> new_cap;
    std::string reason;
};
/// Where questions go. Called on the run's executor; may wait as long as it likes (humanChannelTimeoutMs bounds it).
using human_channel = std::function<awaitable<human_answer>(human_event)>;

}  // namespace reagent::inline v0
