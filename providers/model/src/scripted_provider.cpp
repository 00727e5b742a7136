#include <reagent/base/utf8.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/model/result_events.hpp>
#include <reagent/model/scripted_provider.hpp>

#include <algorithm>

namespace reagent::inline v0 {

scripted_round& scripted_round::call(std::string id, std::string name, json arguments)
{
    result_.tool_calls.emplace_back(std::move(id), std::move(name), std::move(arguments));
    return *this;
}

scripted_round& scripted_round::usage(std::uint64_t input, std::uint64_t output)
{
    reagent::usage u;
    u.input = input;
    u.output = output;
    return usage(u);
}

scripted_round& scripted_round::malformed(malformed_tool_call m, std::vector<attempted_call> attempted)
{
    result_.malformed = std::move(m);
    result_.attempted = std::move(attempted);
    return *this;
}

class scripted_call final : public model_call {
public:
    scripted_call(std::shared_ptr<scripted_round> round, std::shared_ptr<std::size_t> open, std::string_view model)
        : round_(std::move(round)), open_(std::move(open)), result_(round_->result_)
    {
        ++*open_;
        if (result_.model.empty()) result_.model = model;
        if (result_.stop_reason.empty()) result_.stop_reason = result_.tool_calls.empty() ? "end_turn" : "tool_use";
    }
    ~scripted_call() override { --*open_; }
    scripted_call(const scripted_call&) = delete;
    scripted_call& operator=(const scripted_call&) = delete;

    awaitable<bool> read(event_batch& batch) override
    {
        batch.clear();
        if (done_) co_return false;
        if (sent_ == 0 && round_->delay_) co_await round_->delay_();
        // The last delta comes with the other events; a failure comes after all of them.
        const std::size_t whole = round_->deltas_ + (round_->failure_ ? 1 : 0);
        if (sent_ + 1 < whole) {
            if (sent_ == 0) batch.push(event_kind::start);
            push_delta(batch);
            co_return true;
        }
        done_ = true;
        if (round_->failure_) std::rethrow_exception(round_->failure_);
        if (round_->deltas_ == 1) {
            text_ = result_.text;
            append_result_events(batch, result_);
            co_return false;
        }
        push_delta(batch);
        generate_result rest = result_;
        rest.text.clear();
        append_result_events(batch, rest, true);
        co_return false;
    }
    generate_result take_result() override { return std::move(result_); }
    std::string partial_text() const override { return text_; }

private:
    void push_delta(event_batch& batch)
    {
        const std::string_view all(round_->result_.text);
        const std::size_t length = utf8_length(all), per = (length + round_->deltas_ - 1) / round_->deltas_;
        const std::string_view rest = all.substr(text_.size());
        const bool last = sent_ + 1 >= round_->deltas_;
        const std::string_view delta = last ? rest : utf8_prefix(rest, per);
        ++sent_;
        if (delta.empty()) return;
        text_ += delta;
        batch.push(event_kind::text, delta);
    }

    std::shared_ptr<scripted_round> round_;
    std::shared_ptr<std::size_t> open_;
    generate_result result_;
    std::string text_;
    std::size_t sent_ = 0;
    bool done_ = false;
};

scripted_provider::scripted_provider(std::vector<scripted_round> rounds, std::string model) : model_(std::move(model))
{
    for (scripted_round& r : rounds) add(std::move(r));
}

std::shared_ptr<scripted_provider> scripted_provider::make(std::vector<scripted_round> rounds, std::string model)
{
    return std::make_shared<scripted_provider>(std::move(rounds), std::move(model));
}

scripted_provider& scripted_provider::add(scripted_round round)
{
    rounds_.push_back(std::make_shared<scripted_round>(std::move(round)));
    return *this;
}

model_call_ptr scripted_provider::start(generate_request request)
{
    const auto fits = [&](const std::shared_ptr<scripted_round>& r) { return (r->times_ == 0 || r->used_ < r->times_) && (!r->match_ || r->match_(request)); };
    const auto found = std::find_if(rounds_.begin(), rounds_.end(), fits);
    request.gate = nullptr;
    request.prefix = nullptr;
    requests_.push_back(std::move(request));
    if (found == rounds_.end())
        throw provider_error(errc::not_found, "[ScriptedProvider] no round is left for request " + std::to_string(requests_.size()), false);
    ++(*found)->used_;
    return std::make_unique<scripted_call>(*found, open_, model_);
}

}  // namespace reagent::inline v0
