#pragma once
#include <reagent/model/attempt_gate.hpp>
#include <reagent/model/degradation.hpp>
#include <reagent/providers/openai.hpp>
#include <reagent/providers/response_decoder.hpp>

#include <array>
#include <exception>
#include <memory>
#include <optional>

namespace reagent::inline v0::providers_detail {

class openai_provider final : public provider {
public:
    openai_provider(http_client http, openai_options options);
    std::string_view name() const noexcept override { return "openai"; }
    std::string_view model() const noexcept override { return codec_.options().model; }
    bool admits_attempts() const noexcept override { return true; }
    model_call_ptr start(generate_request request) override;
    awaitable<generate_result> generate(generate_request request) override;

private:
    friend class openai_call;
    std::shared_ptr<openai_provider> self() { return std::static_pointer_cast<openai_provider>(shared_from_this()); }
    void warn(std::string_view what) const;
    void warn_once(bool& said, std::string_view what);
    std::optional<std::size_t>& winner(thinking_mode m) { return winners_[m == thinking_mode::on ? 0 : 1]; }

    http_client http_;
    openai_options options_;
    openai_codec codec_;
    std::array<std::optional<std::size_t>, 2> winners_;  ///< accepted shape by mode
    bool said_temperature_ = false, said_unsupported_ = false, said_ignored_ = false;
};

/// One logical call: encodes, passes the gate, sends, decodes, and sends again without a refused temperature or with the next thinking shape.
class openai_call final : public model_call {
public:
    openai_call(std::shared_ptr<openai_provider> owner, generate_request request);
    ~openai_call() override;
    openai_call(const openai_call&) = delete;
    openai_call& operator=(const openai_call&) = delete;

    awaitable<bool> read(event_batch& batch) override;
    /// Whether another step leads on, for who wants the result and no events.
    bool unfinished() const noexcept { return turn_ == turn::again || turn_ == turn::more; }
    /// One attempt's beginning, or the next bytes of it. `batch` may be null.
    awaitable<void> step(event_batch* batch);
    /// Throws what the call failed with, if it did.
    void check() const;
    generate_result take_result() override { return turn_ == turn::done ? response_->take_result() : generate_result(); }
    std::string partial_text() const override;

private:
    /// What the last step of an attempt led to.
    enum class turn : std::uint8_t { more, deliver, again, done, failed };

    void begin();
    attempt_info describe() const;
    http_request make_request() const;
    void opened(http_exchange exchange);
    turn judge(event_batch* batch);
    turn on_failure();
    turn on_result();
    bool over_budget();
    void settle() noexcept;
    void close() noexcept;
    /// The exception for a failure before or inside the response, in the provider's words.
    std::exception_ptr in_our_words(const std::exception_ptr& failure) const;
    bool late(const std::exception_ptr& failure) const;
    void redact(provider_error& e) const;

    std::shared_ptr<openai_provider> owner_;
    generate_request request_;
    openai_call_plan plan_;
    temperature_fallback temperature_;
    thinking_ladder ladder_;
    std::string storage_;
    wire_request wire_;
    permit permit_;
    std::optional<http_exchange> exchange_;
    std::unique_ptr<response_decoder> response_;  ///< made when the head is there, since a thousand calls wait with as little memory as may be
    std::exception_ptr failure_;
    steady_time began_{}, deadline_ = steady_time::max();
    std::chrono::nanoseconds idle_{0};
    std::optional<usage> observed_;
    unsigned attempts_ = 0;
    bool resent_ = false;  // a reused connection went stale under the request: once a call
    int status_ = 0;
    turn turn_ = turn::again;
    bool request_left_ = false, unsettled_ = false, begun_ = false;
};

}  // namespace reagent::inline v0::providers_detail
