#pragma once
#include <reagent/model/provider.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// One answer of a `scripted_provider`. Setters chain.
class scripted_round {
public:
    scripted_round() = default;
    /// An answer of text: stop reason `end_turn`.
    explicit scripted_round(std::string text) { this->text(std::move(text)); }

    scripted_round& text(std::string t)
    {
        result_.text = std::move(t);
        return *this;
    }
    /// The text arrives in this many deltas, a batch each (default 1).
    scripted_round& deltas(std::size_t n)
    {
        deltas_ = n == 0 ? 1 : n;
        return *this;
    }
    scripted_round& call(std::string id, std::string name, json arguments = json::object());
    scripted_round& usage(std::uint64_t input, std::uint64_t output);
    scripted_round& usage(reagent::usage u)
    {
        result_.usage = u;
        return *this;
    }
    scripted_round& stop(std::string reason)
    {
        result_.stop_reason = std::move(reason);
        return *this;
    }
    scripted_round& model(std::string id)
    {
        result_.model = std::move(id);
        return *this;
    }
    scripted_round& cost(usd price)
    {
        result_.cost = price;
        return *this;
    }
    scripted_round& blocks(provider_blocks b)
    {
        result_.blocks = std::move(b);
        return *this;
    }
    scripted_round& malformed(malformed_tool_call m, std::vector<attempted_call> attempted = {});
    /// Thrown when the deltas are out, instead of a result.
    scripted_round& error(std::exception_ptr failure)
    {
        failure_ = std::move(failure);
        return *this;
    }
    template <class E>
    scripted_round& error(E failure)
    {
        return error(std::make_exception_ptr(std::move(failure)));
    }
    /// Awaited before the first event.
    scripted_round& delay(std::function<awaitable<void>()> hook)
    {
        delay_ = std::move(hook);
        return *this;
    }
    /// The round answers only requests this accepts.
    scripted_round& when(std::function<bool(const generate_request&)> match)
    {
        match_ = std::move(match);
        return *this;
    }
    /// The round answers this many requests (default 1, 0 any number).
    scripted_round& times(std::size_t n)
    {
        times_ = n;
        return *this;
    }
    /// Full control over what is answered.
    generate_result& result() noexcept { return result_; }

private:
    friend class scripted_provider;
    friend class scripted_call;
    generate_result result_;
    std::size_t deltas_ = 1, times_ = 1, used_ = 0;
    std::exception_ptr failure_;
    std::function<awaitable<void>()> delay_;
    std::function<bool(const generate_request&)> match_;
};

/// A provider without I/O: answers from a list of rounds, the first that is not used up and matches. Does not admit its attempts (`admits_attempts`
/// is false). Records what it was asked. One executor.
class scripted_provider final : public provider {
public:
    explicit scripted_provider(std::vector<scripted_round> rounds, std::string model = "scripted-model");
    static std::shared_ptr<scripted_provider> make(std::vector<scripted_round> rounds, std::string model = "scripted-model");

    std::string_view name() const noexcept override { return "scripted"; }
    std::string_view model() const noexcept override { return model_; }
    /// Throws `provider_error` when no round is left for the request.
    model_call_ptr start(generate_request request) override;

    scripted_provider& add(scripted_round round);
    /// The requests so far, in order; gate and prefix are null in them.
    const std::vector<generate_request>& requests() const noexcept { return requests_; }
    /// Calls under way.
    std::size_t open_calls() const noexcept { return *open_; }

private:
    std::string model_;
    std::vector<std::shared_ptr<scripted_round>> rounds_;
    std::vector<generate_request> requests_;
    std::shared_ptr<std::size_t> open_ = std::make_shared<std::size_t>(0);
};

}  // namespace reagent::inline v0
