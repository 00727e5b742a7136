#include <reagent/model/message.hpp>

#include <algorithm>

namespace reagent::inline v0 {

namespace {

class open_round {
public:
    /// Calls of the last assistant message and how many results each has had.
    std::vector<std::pair<std::string, unsigned>> calls;
    std::size_t at = 0;

    void close(std::vector<std::string>& faults)
    {
        for (const auto& [id, results] : calls) {
            if (results == 1) continue;
            faults.push_back("messages[" + std::to_string(at) + "]: call " + id + (results == 0 ? " has no result" : " has more than one result"));
        }
        calls.clear();
    }
};

}  // namespace

std::vector<std::string> check_transcript(std::span<const message_ptr> messages)
{
    std::vector<std::string> faults;
    open_round round;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const message& m = *messages[i];
        const std::string where = "messages[" + std::to_string(i) + "]: ";
        if (m.who == role::tool) {
            const auto found = std::find_if(round.calls.begin(), round.calls.end(), [&](const auto& c) { return c.first == m.tool_call_id; });
            if (found == round.calls.end())
                faults.push_back(where + "result for " + (m.tool_call_id.empty() ? "no id" : m.tool_call_id) + " answers no call of this round");
            else ++found->second;
            continue;
        }
        if (m.who != role::user && m.who != role::assistant) continue;
        round.close(faults);
        round.at = i;
        for (const tool_call* c : m.calls()) {
            if (c->id.empty()) faults.push_back(where + "call of " + c->name + " has no id");
            const bool twice = std::any_of(round.calls.begin(), round.calls.end(), [&](const auto& known) { return known.first == c->id; });
            if (twice) faults.push_back(where + "call id " + c->id + " is used twice");
            else round.calls.emplace_back(c->id, 0U);
        }
    }
    round.close(faults);
    return faults;
}

}  // namespace reagent::inline v0
