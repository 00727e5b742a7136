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
    human_event() = default;
    bool halt = false;        ///< kind: halt, else ask
    reagent::action subject;  ///< the checked action, redacted
    severity level = severity::action;
    std::string rule, reason;
    json context;  ///< §3.4
};
enum class human_verdict : std::uint8_t { allow, deny, topup, terminate, none, other };
/// What the person said (spec/governance.md §1.1).
class human_answer {
public:
    human_answer() = default;
    explicit human_answer(human_verdict v) : verdict(v) {}
    /// `{decision, newCap?, reason?}`; null is no answer, a decision this version does not know is `other`.
    static human_answer from_json(const json& answer);
    human_verdict verdict = human_verdict::none;
    std::optional<double> new_cap;
    std::string reason;
    std::string word;  ///< the decision as given, when it is `other`
};
/// Where questions go, a coroutine. Called on the run's executor; the event lives until it has ended. May wait as long as it likes
/// (humanChannelTimeoutMs bounds it). It must honour cancellation: when the time is up it is cancelled and joined, and what it still answers is dropped.
using human_channel = std::function<awaitable<human_answer>(const human_event&)>;

}  // namespace reagent::inline v0
