#include "http_model_call.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/with_deadline.hpp>
#include <reagent/model/attempt_bound.hpp>

#include <algorithm>
#include <utility>

namespace reagent::inline v0::providers_detail {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

bool went_stale(const std::exception_ptr& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const transport_error& e) {
        return e.stale();
    } catch (...) {
        return false;
    }
}

std::string ms_text(nanoseconds d)
{
    return std::to_string(std::chrono::duration_cast<milliseconds>(d).count()) + "ms";
}

}  // namespace

http_model_call::http_model_call(std::shared_ptr<http_provider> owner, generate_request request)
    : owner_(std::move(owner)),
      request_(std::move(request)),
      plan_(codec().plan(request_)),
      temperature_(plan_.temperature.has_value()),
      ladder_(codec().ladder(plan_, plan_.mode ? owner_->winner(*plan_.mode) : std::nullopt))
{}

http_model_call::~http_model_call()
{
    close();
    settle();
}

std::string http_model_call::partial_text() const
{
    return response_ ? response_->answer().text() : std::string();
}

void http_model_call::begin()
{
    if (begun_) return;
    begun_ = true;
    if (!plan_.notice.empty()) owner_->warn_once(owner_->said_notice_, plan_.notice);
    const generate_options& own = request_.options;
    const http_call_options& o = owner_->options_;
    began_ = owner_->http_.clock()->now();
    idle_ = own.idle.or_else(o.idle.or_else(std::chrono::seconds(600)));
    const nanoseconds total = own.total.or_else(o.total.or_else(nanoseconds(0)));
    deadline_ = own.deadline;
    // A negative rest of somebody's time is over at once.
    if (total.count() < 0) deadline_ = began_;
    else if (total.count() > 0 && began_ < steady_time::max() - total) deadline_ = std::min(deadline_, began_ + total);
}

attempt_info http_model_call::describe() const
{
    attempt_info info;
    info.model = codec().model();
    info.input_bound = input_bound(wire_.body.size(), request_.messages, info.model);
    info.output_bound = plan_.max_tokens;
    info.number = attempts_;
    return info;
}

http_request http_model_call::make_request() const
{
    const http_call_options& o = owner_->options_;
    http_request r("POST", *wire_.target);
    r.header_lines = wire_.header_lines;
    r.body = wire_.body;
    r.limits.connect = o.connect.or_else(std::chrono::seconds(10));
    r.limits.first_byte = o.first_byte.or_else(nanoseconds(0));
    r.limits.idle = idle_;
    r.limits.deadline = deadline_;
    // A stream is bounded event by event, a JSON body by the decoder, whatever the request asked for.
    r.limits.max_body = plan_.stream ? 0 : o.limits.max_body;
    // Each request that leaves has been admitted: the client does not send a second one by itself.
    r.resend = false;
    r.fresh = resent_;
    return r;
}

void http_model_call::begin_attempt()
{
    begin();
    if (storage_.capacity() < sizeof storage_) storage_ = owner_->take_storage();
    wire_ = codec().encode(request_, plan_, temperature_.send(), ladder_.members(), storage_);
    ++attempts_;
    status_ = 0;
    response_.reset();
    exchange_.reset();
    request_left_ = false;
}

void http_model_call::opened(http_exchange exchange)
{
    exchange_.emplace(std::move(exchange));
    const http_head& head = exchange_->head();
    status_ = static_cast<int>(head.status);
    response_.emplace(codec(), request_.tools, plan_.stream, head.status, head.fields, owner_->http_.clock()->wall(), owner_->options_.limits);
    permit_.mark_sent();
    owner_->keep_storage(std::exchange(storage_, {}));
}

http_model_call::turn http_model_call::not_opened(const std::exception_ptr& broken)
{
    if (unsettled_ && !resent_ && went_stale(broken)) {
        // As if sent for the first time, but on a connection of its own, and admitted anew: what left may have been charged.
        resent_ = true;
        close();
        settle();
        return turn::again;
    }
    // The gate's own errors keep their words, but the call's deadline reads the same wherever it strikes.
    return fail(unsettled_ || late(broken) ? in_our_words(broken) : broken);
}

http_model_call::turn http_model_call::fail(std::exception_ptr failure)
{
    failure_ = std::move(failure);
    close();
    settle();
    return turn::failed;
}

awaitable<bool> http_model_call::advance(event_batch* batch)
{
    if (batch != nullptr) batch->clear();
    if (turn_ == turn::deliver) turn_ = turn::more;
    while (unfinished()) {
        std::exception_ptr broken;
        if (turn_ == turn::again) {
            begin_attempt();
            try {
                if (request_.gate != nullptr && !request_.gate->open()) {
                    attempt_info info = describe();
                    awaitable<permit> admitted = request_.gate->admit(std::move(info));
                    // The wait for admission counts against the call's time, too.
                    if (deadline_ != steady_time::max()) admitted = with_deadline<permit>(owner_->http_.clock(), deadline_, std::move(admitted), "the call");
                    permit granted = co_await std::move(admitted);
                    permit_ = std::move(granted);
                }
                unsettled_ = true;
                awaitable<http_exchange> opening = owner_->http_.open(make_request(), &request_left_);
                http_exchange exchange = co_await std::move(opening);
                opened(std::move(exchange));
            } catch (...) {
                broken = std::current_exception();
            }
            turn_ = broken ? not_opened(broken) : judge(batch);  // a head may say enough
        } else {
            std::span<const char> bytes;
            bool failed = false;
            try {
                const bool buffered = exchange_->try_read_some(bytes);
                if (!buffered) bytes = co_await exchange_->read_some();
            } catch (const error& e) {
                broken = std::current_exception();
                failed = !is_cancellation(broken) && e.code() != condition::timeout;
                if (failed) response_->broken(e, batch);
            } catch (...) {
                broken = std::current_exception();
            }
            if (!broken) take(std::string_view(bytes.data(), bytes.size()), batch);
            turn_ = broken && !failed ? fail(in_our_words(broken)) : judge(batch);
        }
        // What was decoded before a failure is delivered first.
        if (turn_ == turn::failed && batch != nullptr && !batch->empty()) co_return true;
    }
    if (turn_ == turn::failed) std::rethrow_exception(failure_);
    co_return turn_ == turn::deliver;
}

void http_model_call::take(std::string_view bytes, event_batch* batch)
{
    if (response_->state() != decode_state::more) return;
    const body_end ended = exchange_->ended();
    if (bytes.empty()) response_->end(ended == body_end::aborted ? body_end::aborted : body_end::complete, batch);
    else if (ended == body_end::complete) response_->feed_last(bytes, batch);
    else response_->feed(bytes, batch);
}

http_model_call::turn http_model_call::judge(event_batch* batch)
{
    switch (response_->state()) {
    case decode_state::done: return on_result();
    case decode_state::failed: return on_failure();
    case decode_state::more: break;
    }
    if (over_budget()) return fail(std::make_exception_ptr(halt_error(permit_.halt_rule())));
    return batch != nullptr && !batch->empty() ? turn::deliver : turn::more;
}

/// Only reported usage of an answer that is still running counts.
bool http_model_call::over_budget()
{
    const wire_decoder& answer = response_->answer();
    if (!answer.reported_usage() || answer.complete() || (observed_ && *answer.reported_usage() == *observed_)) return false;
    observed_ = answer.reported_usage();
    return !permit_.observe(*observed_);
}

http_model_call::turn http_model_call::on_result()
{
    const thinking_signal seen = response_->answer().thinking_seen();
    // What is buffered behind the logical end may be the end of the body: then the connection can be used again.
    std::span<const char> rest;
    try {
        while (exchange_->ended() == body_end::open && exchange_->try_read_some(rest) && !rest.empty()) {}
    } catch (const error&) {
        // The answer is whole; how its connection ends is the pool's matter.
    }
    call_timings t;
    t.connect = exchange_->connect_time();
    t.first_byte = exchange_->first_byte_time();
    t.total = owner_->http_.clock()->now() - began_;
    close();  // before the budget lets the next one in: to the server this request must be over
    settle();
    response_->complete_result();
    generate_result& result = response_->answer().result();
    result.timings = t;
    result.attempts = attempts_;
    result.temperature_dropped = temperature_.dropped();
    result.thinking = ladder_.accepted(seen);
    if (plan_.mode) {
        if (ladder_.winner()) owner_->winner(*plan_.mode) = ladder_.winner();
        if (ladder_.exhausted()) owner_->warn_once(owner_->said_unsupported_, "the model accepts no form of thinkingMode; it runs as it is");
        if (result.thinking == thinking_status::ignored) owner_->warn_once(owner_->said_ignored_, "the model thinks although thinkingMode is off");
    }
    return turn::done;
}

http_model_call::turn http_model_call::on_failure()
{
    provider_error e = response_->answer().take_failure();
    const std::string said = response_->service_message();
    close();
    settle();
    if (temperature_.blamed(e.status, codec().refuses_temperature(said, plan_))) {
        owner_->warn_once(owner_->said_temperature_, "the model takes no temperature; it is left out");
        return turn::again;
    }
    // Only a status of the service can refuse a shape, an error inside a 200 cannot.
    if (e.bound.empty() && ladder_.refused(e.status) == thinking_ladder::verdict::resend) {
        if (ladder_.winner_failed()) owner_->winner(*plan_.mode).reset();
        return turn::again;
    }
    e.attempts = attempts_;
    redact(e);
    failure_ = std::make_exception_ptr(std::move(e));
    return turn::failed;
}

/// The call's own deadline, not one of the gate's.
bool http_model_call::late(const std::exception_ptr& failure) const
{
    return code_of(failure) == errc::deadline && owner_->http_.clock()->now() >= deadline_;
}

void http_model_call::settle() noexcept
{
    if (!unsettled_) return;
    unsettled_ = false;
    attempt_outcome o;
    o.request_left = request_left_;
    if (response_) {
        const wire_decoder& answer = response_->answer();
        o.complete = response_->whole();
        o.status = status_;
        o.usage = answer.reported_usage();
        o.received_bytes = answer.received_bytes();
        o.model = answer.response_model();
    }
    permit_.settle(o);
}

void http_model_call::close() noexcept
{
    if (exchange_) exchange_->finish();
}

std::exception_ptr http_model_call::in_our_words(const std::exception_ptr& failure) const
{
    if (is_cancellation(failure)) return failure;
    try {
        std::rethrow_exception(failure);
    } catch (const halt_error&) {
        return failure;
    } catch (const provider_error&) {
        return failure;
    } catch (const validation_error&) {
        return failure;  // what we were given is at fault, not the way to the service
    } catch (const config_error&) {
        return failure;
    } catch (const error& e) {
        if (e.code() != condition::timeout) {
            provider_error out = transport_failure(e, codec().component());
            out.attempts = attempts_;
            redact(out);
            return std::make_exception_ptr(std::move(out));
        }
        const auto which = static_cast<errc>(e.code().value());
        std::string text = std::string(e.what());
        if (which == errc::idle_timeout) text = "request timed out after " + ms_text(idle_) + " of socket inactivity";
        else if (which == errc::deadline) text = "request exceeded its total deadline of " + ms_text(deadline_ - began_);
        else if (which == errc::connect_timeout) text = "no connection within " + ms_text(owner_->options_.connect.or_else(std::chrono::seconds(10)));
        else if (which == errc::first_byte_timeout) text = "no response head within " + ms_text(owner_->options_.first_byte.or_else(nanoseconds(0)));
        return std::make_exception_ptr(timeout_error(which, prefixed(codec().component(), text)));
    } catch (...) {
        return failure;
    }
}

/// A service may quote the key it refuses.
void http_model_call::redact(provider_error& e) const
{
    const std::string_view key = codec().key();
    if (e.body) e.body = hide_secret(*e.body, key);
    std::string message = hide_secret(e.message(), key);
    if (message == e.message()) return;
    provider_error out(static_cast<errc>(e.code().value()), std::move(message), e.retryable());
    out.cause = e.cause;
    out.status = e.status;
    out.bound = std::move(e.bound);
    out.event = std::move(e.event);
    out.body = std::move(e.body);
    out.retry_after = e.retry_after;
    out.partial = std::move(e.partial);
    out.request_id = std::move(e.request_id);
    out.rate_limit = e.rate_limit;
    out.attempts = e.attempts;
    e = std::move(out);
}

}  // namespace reagent::inline v0::providers_detail
