#pragma once
#include <reagent/model/attempt_gate.hpp>
#include <reagent/model/degradation.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/model/wire_codec.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/http_call_options.hpp>
#include <reagent/providers/response_decoder.hpp>

#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reagent::inline v0::providers_detail {

/// A codec bound to a client, and what its calls learned together.
class http_provider final : public provider {
public:
    http_provider(http_client http, std::unique_ptr<const wire_codec> codec, http_call_options options);
    std::string_view name() const noexcept override { return codec_->provider_name(); }
    std::string_view model() const noexcept override { return codec_->model(); }
    std::optional<std::uint64_t> max_output() const noexcept override { return codec_->max_output(); }
    bool admits_attempts() const noexcept override { return true; }
    model_call_ptr start(generate_request request) override;
    awaitable<generate_result> generate(generate_request request) override;

private:
    friend class http_model_call;
    std::shared_ptr<http_provider> self() { return std::static_pointer_cast<http_provider>(shared_from_this()); }
    void warn(std::string_view what) const;
    void warn_once(bool& said, std::string_view what);
    /// A body's memory goes from call to call; large ones go back to the system.
    std::string take_storage();
    void keep_storage(std::string body);
    static constexpr std::size_t max_spare = 64, max_spare_size = 64 * 1024;
    std::optional<std::size_t>& winner(thinking_mode m) { return winners_[m == thinking_mode::on ? 0 : 1]; }

    http_client http_;
    std::unique_ptr<const wire_codec> codec_;
    http_call_options options_;
    std::array<std::optional<std::size_t>, 2> winners_;  ///< accepted shape by mode
    std::vector<std::string> spare_;                     ///< request bodies of calls that have been answered
    bool said_temperature_ = false, said_unsupported_ = false, said_ignored_ = false, said_notice_ = false;
};

/// One logical call: encodes, passes the gate, sends, decodes, and sends again without a refused temperature or with the next thinking shape.
class http_model_call final : public model_call {
public:
    http_model_call(std::shared_ptr<http_provider> owner, generate_request request);
    ~http_model_call() override;
    http_model_call(const http_model_call&) = delete;
    http_model_call& operator=(const http_model_call&) = delete;

    awaitable<bool> read(event_batch& batch) override { return advance(&batch); }
    /// Goes on until there are events to deliver, without a `batch` to the end of the call. Throws what the call failed with.
    awaitable<bool> advance(event_batch* batch);
    generate_result take_result() override { return turn_ == turn::done ? response_->answer().take_result() : generate_result(); }
    std::string partial_text() const override;

private:
    /// What the last step of an attempt led to.
    enum class turn : std::uint8_t { more, deliver, again, done, failed };

    bool unfinished() const noexcept { return turn_ == turn::again || turn_ == turn::more; }
    void begin();
    void begin_attempt();
    attempt_info describe() const;
    http_request make_request() const;
    void opened(http_exchange exchange);
    /// What an attempt that did not open leads to.
    turn not_opened(const std::exception_ptr& broken);
    void take(std::string_view bytes, event_batch* batch);
    turn judge(event_batch* batch);
    turn on_failure();
    turn on_result();
    turn fail(std::exception_ptr failure);
    bool over_budget();
    void settle() noexcept;
    void close() noexcept;
    /// The exception for a failure before or inside the response, in the provider's words.
    std::exception_ptr in_our_words(const std::exception_ptr& failure) const;
    bool late(const std::exception_ptr& failure) const;
    void redact(provider_error& e) const;
    const wire_codec& codec() const noexcept { return *owner_->codec_; }

    std::shared_ptr<http_provider> owner_;
    generate_request request_;
    call_plan plan_;
    temperature_fallback temperature_;
    thinking_ladder ladder_;
    std::string storage_;
    wire_request wire_;
    permit permit_;
    std::optional<http_exchange> exchange_;
    std::optional<response_decoder> response_;  ///< made when the head is there
    std::exception_ptr failure_;
    steady_time began_{}, deadline_ = steady_time::max();
    std::chrono::nanoseconds idle_{0};
    rare<usage> observed_;
    unsigned attempts_ = 0;
    bool resent_ = false;  // a reused connection went stale under the request: once a call
    int status_ = 0;
    turn turn_ = turn::again;
    bool request_left_ = false, unsettled_ = false, begun_ = false;
};

}  // namespace reagent::inline v0::providers_detail
