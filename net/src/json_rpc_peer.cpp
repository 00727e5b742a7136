#include "json_rpc_peer.hpp"

#include "later.hpp"
#include "waiting_place.hpp"

#include <reagent/base/spawn.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace reagent::inline v0 {
namespace {

using net_detail::parking;

std::string quoted(std::string_view method)
{
    return "\"" + untrusted_text(method, 100) + "\"";
}

std::string in_ms(duration d)
{
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + "ms";
}

}  // namespace

json rpc_reply::take() &&
{
    switch (status) {
    case rpc_status::result: return std::move(result);
    case rpc_status::error: throw rpc_fault(error);
    case rpc_status::timed_out: throw timeout_error(errc::deadline, why);
    case rpc_status::not_sent: throw reagent::error(errc::transport_failed, why);
    case rpc_status::disconnected: break;
    }
    throw reagent::error(errc::closed, why);
}

// ---- a pending call

json_rpc_peer::impl::pending::pending(impl& p, rpc_call& request)
    : peer(p),
      id(request.id != 0 ? request.id : ++p.last_id),
      method(request.method),
      timeout(request.timeout == duration::min() ? p.options.call_timeout : request.timeout),
      max_total(request.max_total > duration::zero() ? request.max_total
                    : timeout > duration::max() / 10 ? duration::max()
                                                     : 10 * timeout),
      started(p.time->now()),
      moved(started),
      cancellable(request.cancellable),
      place(p.ex)
{}

steady_time json_rpc_peer::impl::pending::due() const noexcept
{
    return std::min(net_detail::later(moved, timeout), net_detail::later(started, max_total));
}

steady_time json_rpc_peer::impl::pending::on_deadline(steady_time now)
{
    if (now < due()) return due();
    peer.give_up(*this, "timed out");
    peer.settle(*this, rpc_status::timed_out, "[rpc] " + quoted(method) + " timed out after " + in_ms(now - started));
    return steady_time::max();
}

// ---- the shared state

json_rpc_peer::impl::impl(any_io_executor e, std::unique_ptr<message_link> l, json_rpc_options o)
    : ex(std::move(e)), link(std::move(l)), options(std::move(o)), time(options.clock ? options.clock : clock::system()), deadlines(ex, time)
{}

void json_rpc_peer::impl::start()
{
    spawn(std::make_shared<task>(), read_all(shared_from_this()));
    spawn(std::make_shared<task>(), write_all(shared_from_this()));
}

void json_rpc_peer::impl::spawn(const std::shared_ptr<task>& t, awaitable<void> work)
{
    tasks.push_back(t);
    // The handler keeps us alive: a frame that did would destroy us from inside a task that is still listed.
    asio::co_spawn(ex, std::move(work), asio::bind_cancellation_slot(t->stop.slot(), [self = shared_from_this(), t](const std::exception_ptr& failure) {
                       if (failure && !is_cancellation(failure)) self->options.log(log_level::error, "[rpc] " + message_of(failure));
                       self->left(t);
                   }));
}

void json_rpc_peer::impl::left(const std::shared_ptr<task>& t)
{
    tasks.remove(t);
    if (!t->id.is_null()) --handlers;
    if (!tasks.empty()) return;
    for (parking* p : joining) p->wake();
}

void json_rpc_peer::impl::stop_tasks(bool handlers_only)
{
    // A task may end inside the signal and leave the list.
    const std::vector<std::shared_ptr<task>> all(tasks.begin(), tasks.end());
    for (const std::shared_ptr<task>& t : all) {
        if (handlers_only && t->id.is_null()) continue;
        abort(t);
    }
}

void json_rpc_peer::impl::abort(const std::shared_ptr<task>& t)
{
    t->aborted = true;
    // Emitted outside the executor, Asio would post the rest of the signal and not keep the task for it.
    asio::dispatch(ex, [t] { t->stop.emit(asio::cancellation_type::terminal); });
}

const std::shared_ptr<json_rpc_peer::impl::task>* json_rpc_peer::impl::serving(const json& id) const noexcept
{
    for (const std::shared_ptr<task>& t : tasks) {
        if (!t->id.is_null() && t->id == id) return &t;
    }
    return nullptr;
}

void json_rpc_peer::impl::enqueue(std::string text, std::int64_t id)
{
    counts.queued_bytes += text.size();
    queue.push_back(outgoing{std::move(text), id});
    if (writer_idle) writer_idle->wake();
}

void json_rpc_peer::impl::send_answer(std::string text)
{
    if (closed) return;
    if (counts.queued_bytes + text.size() > options.max_queued && !queue.empty()) {
        fail("[rpc] the peer does not read its answers: more than " + std::to_string(options.max_queued) + " bytes are waiting", true);
        return;
    }
    enqueue(std::move(text), 0);
}

void json_rpc_peer::impl::settle(pending& p, rpc_status status, std::string why)
{
    if (p.done) return;
    p.done = true;
    p.reply.status = status;
    p.reply.why = std::move(why);
    deadlines.unlink(p);
    p.place.wake();
    calls.erase(p.id);
}

void json_rpc_peer::impl::give_up(pending& p, std::string_view reason)
{
    if (!p.reply.written) {
        const auto at = std::find_if(queue.begin(), queue.end(), [&p](const outgoing& o) { return o.id == p.id; });
        if (at == queue.end()) return;
        counts.queued_bytes -= at->text.size();
        queue.erase(at);
        return;
    }
    if (closed || !p.cancellable || options.cancel_method.empty()) return;
    json params = json::object();
    params.set("requestId", p.id).set("reason", reason);
    ++counts.cancel_notices;
    // Beyond the limit of the queue as well: there are never more of them than calls that were written.
    enqueue(rpc_notification_text(options.cancel_method, params), 0);
}

void json_rpc_peer::impl::fail(const std::string& why, bool by_itself)
{
    if (closed) return;
    closed = true;
    why_closed = why;
    // One may start another call when it hears of its end; it is refused then.
    const auto all = std::exchange(calls, {});
    for (const auto& [id, p] : all) settle(*p, rpc_status::disconnected, why);
    queue.clear();
    counts.queued_bytes = 0;
    if (writer_idle) writer_idle->wake();
    stop_tasks(true);
    if (by_itself && at_end) at_end(why_closed);
}

// ---- what the peer says

void json_rpc_peer::impl::take(std::string_view text)
{
    boost::system::result<json> parsed = json::parse(text);
    if (!parsed) {
        ++counts.not_json;
        options.log(log_level::debug, "[rpc] a message is no JSON: " + untrusted_text(text.substr(0, 800), 200));
        return;
    }
    if (!parsed->is_array() || !options.batches) {
        take_message(std::move(*parsed));
        return;
    }
    for (json& one : parsed->as_array()) take_message(std::move(one));
}

void json_rpc_peer::impl::take_message(json message)
{
    rpc_message m = read_rpc(std::move(message));
    switch (m.kind) {
    case rpc_kind::malformed:
        ++counts.malformed;
        options.log(log_level::debug, "[rpc] not a message of JSON-RPC 2.0: " + m.problem);
        return;
    case rpc_kind::response: take_response(std::move(m)); return;
    case rpc_kind::request: take_request(std::move(m)); return;
    case rpc_kind::notification: break;
    }
    ++counts.notifications;
    const auto found = notifications.find(m.method);
    if (found == notifications.end()) return;
    try {
        found->second(m.params);
    } catch (...) {
        options.log(log_level::error, "[rpc] the handler of " + quoted(m.method) + " failed: " + message_of(std::current_exception()));
    }
}

void json_rpc_peer::impl::take_response(rpc_message m)
{
    const std::optional<std::int64_t> id = m.id.get_int64();
    const auto found = id ? calls.find(*id) : calls.end();
    if (found == calls.end()) {
        ++(id && *id > 0 && *id <= last_id ? counts.late_responses : counts.unknown_responses);
        return;
    }
    const std::shared_ptr<pending> p = found->second;
    p->reply.result = std::move(m.result);
    p->reply.error = std::move(m.error);
    // Whoever answers has read it, whatever the writer has come to know.
    p->reply.written = true;
    settle(*p, m.failed ? rpc_status::error : rpc_status::result, {});
}

void json_rpc_peer::impl::take_request(rpc_message m)
{
    ++counts.requests;
    if (const auto simple = answers.find(m.method); simple != answers.end()) {
        std::string text;
        try {
            text = rpc_result_text(m.id, simple->second(m.params));
        } catch (const rpc_fault& fault) {
            text = rpc_error_text(m.id, fault.reply());
        } catch (...) {
            options.log(log_level::error, "[rpc] the handler of " + quoted(m.method) + " failed: " + message_of(std::current_exception()));
            text = rpc_error_text(m.id, rpc_error(rpc_code::internal_error, "internal error"));
        }
        send_answer(std::move(text));
        return;
    }
    const auto found = requests.find(m.method);
    if (found == requests.end()) {
        send_answer(rpc_error_text(m.id, rpc_error(rpc_code::method_not_found, "no such method: " + untrusted_text(m.method, 100))));
        return;
    }
    if (serving(m.id)) {
        ++counts.duplicate_requests;
        return;
    }
    if (handlers >= options.max_handlers) {
        ++counts.refused;
        send_answer(rpc_error_text(m.id, rpc_error(rpc_code::busy, "too many requests at once")));
        return;
    }
    ++handlers;
    const auto t = std::make_shared<task>();
    t->id = std::move(m.id);
    spawn(t, serve(shared_from_this(), t, found->second, std::move(m.params), std::move(m.method)));
}

awaitable<void> json_rpc_peer::impl::serve(std::shared_ptr<impl> self, std::shared_ptr<task> t, request_handler handler, json params, std::string method)
{
    std::string text;
    try {
        awaitable<json> work = handler(std::move(params));
        const json answer = co_await std::move(work);
        text = rpc_result_text(t->id, answer);
    } catch (const rpc_fault& fault) {
        text = rpc_error_text(t->id, fault.reply());
    } catch (...) {
        // The words stay here: what an exception of the host says is not for the peer.
        if (!t->aborted) self->options.log(log_level::error, "[rpc] the handler of " + quoted(method) + " failed: " + message_of(std::current_exception()));
        text = rpc_error_text(t->id, rpc_error(rpc_code::internal_error, "internal error"));
    }
    if (!t->aborted) self->send_answer(std::move(text));
}

awaitable<void> json_rpc_peer::impl::read_all(std::shared_ptr<impl> self)
{
    message_batch batch;
    std::string broken;
    try {
        for (;;) {
            const bool more = co_await self->link->read(batch);
            if (!more) break;
            for (std::size_t i = 0; i < batch.size() && !self->closed; ++i) self->take(batch[i]);
        }
    } catch (...) {
        broken = message_of(std::current_exception());
    }
    if (self->closed) co_return;
    if (broken.empty()) {
        const std::string words = co_await self->link->obituary();
        broken = "[rpc] the peer " + words;
    }
    self->fail(broken, true);
}

awaitable<void> json_rpc_peer::impl::write_all(std::shared_ptr<impl> self)
{
    while (!self->closed) {
        if (self->queue.empty()) {
            parking idle(self->ex);
            self->writer_idle = &idle;
            co_await idle.wait();
            self->writer_idle = nullptr;
            const auto state = co_await asio::this_coro::cancellation_state;
            if (state.cancelled() != asio::cancellation_type::none) co_return;
            continue;
        }
        const outgoing next = std::move(self->queue.front());
        self->queue.pop_front();
        // From here on the line is the writer's: a caller who leaves does not cut it.
        const auto found = self->calls.find(next.id);
        if (found != self->calls.end()) found->second->reply.written = true;
        std::string broken;
        try {
            co_await self->link->write(next.text);
        } catch (...) {
            broken = message_of(std::current_exception());
        }
        if (!self->closed) self->counts.queued_bytes -= next.text.size();
        if (broken.empty() || self->closed) continue;
        if (self->link->alive()) {
            const auto still = self->calls.find(next.id);
            if (still == self->calls.end()) continue;
            const std::shared_ptr<pending> p = still->second;
            self->settle(*p, rpc_status::not_sent, broken);
            continue;
        }
        const std::string words = co_await self->link->obituary();
        self->fail(broken + "; the peer " + words, true);
    }
}

// ---- the operations

awaitable<void> json_rpc_peer::impl::converse(std::shared_ptr<impl> self, std::shared_ptr<pending> p)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await p->place.wait();
    if (p->done) co_return;
    self->give_up(*p, "cancelled");
    self->settle(*p, rpc_status::disconnected, "cancelled");
    throw boost::system::system_error(asio::error::operation_aborted);
}

awaitable<rpc_reply> json_rpc_peer::call_body(std::shared_ptr<impl> self, rpc_call request)
{
    if (self->closed) {
        rpc_reply refused;
        refused.why = self->why_closed;
        co_return refused;
    }
    // Of two calls with one id nobody could tell whose answer comes.
    if (request.id < 0 || request.id > self->last_id || self->calls.count(request.id) != 0)
        throw validation_error("[rpc] the id of a call comes from new_id and is used once");
    const auto p = std::make_shared<impl::pending>(*self, request);
    std::string text = rpc_request_text(p->id, request.method, request.params);
    if (self->counts.queued_bytes + text.size() > self->options.max_queued && !self->queue.empty())
        throw error(errc::limit_exceeded, "[rpc] more than " + std::to_string(self->options.max_queued) + " bytes are waiting to be written");
    ++self->counts.calls;
    self->calls.emplace(p->id, p);
    if (p->timeout > duration::zero()) self->deadlines.link(*p, p->due());
    self->enqueue(std::move(text), p->id);
    co_await isolated(impl::converse(self, p));
    co_return std::move(p->reply);
}

awaitable<void> json_rpc_peer::impl::end(std::shared_ptr<impl> self)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::this_coro::throw_if_cancelled(false);
    self->fail("[rpc] the connection was closed here", false);
    try {
        co_await self->link->close();
    } catch (...) {
        self->options.log(log_level::warn, "[rpc] closing the link: " + message_of(std::current_exception()));
    }
    self->stop_tasks(false);
    while (!self->tasks.empty()) {
        net_detail::waiting_place here(self->ex, self->joining);
        co_await here.place.wait();
    }
}

awaitable<void> json_rpc_peer::close_body(std::shared_ptr<impl> self)
{
    return isolated(impl::end(std::move(self)));
}

json_rpc_peer::json_rpc_peer(any_io_executor ex, std::unique_ptr<message_link> link, json_rpc_options options)
    : impl_(std::make_shared<impl>(std::move(ex), std::move(link), std::move(options)))
{}
json_rpc_peer::json_rpc_peer(json_rpc_peer&&) noexcept = default;

json_rpc_peer::~json_rpc_peer()
{
    if (!impl_) return;
    impl_->fail("[rpc] the connection was dropped here", false);
    impl_->link->abandon();
    impl_->stop_tasks(false);
}

void json_rpc_peer::on_request(std::string method, request_handler handler)
{
    impl_->requests[std::move(method)] = std::move(handler);
}
void json_rpc_peer::answer(std::string method, answer_function handler)
{
    impl_->answers[std::move(method)] = std::move(handler);
}
void json_rpc_peer::on_notification(std::string method, notification_handler handler)
{
    impl_->notifications[std::move(method)] = std::move(handler);
}
void json_rpc_peer::on_end(end_handler handler)
{
    impl_->at_end = std::move(handler);
}
void json_rpc_peer::start()
{
    impl_->start();
}
awaitable<rpc_reply> json_rpc_peer::call(rpc_call request)
{
    return call_body(impl_, std::move(request));
}

void json_rpc_peer::notify(std::string_view method, const json& params)
{
    if (impl_->closed) throw error(errc::closed, impl_->why_closed);
    std::string text = rpc_notification_text(method, params);
    if (impl_->counts.queued_bytes + text.size() > impl_->options.max_queued && !impl_->queue.empty())
        throw error(errc::limit_exceeded, "[rpc] more than " + std::to_string(impl_->options.max_queued) + " bytes are waiting to be written");
    impl_->enqueue(std::move(text), 0);
}

std::int64_t json_rpc_peer::new_id() noexcept
{
    return ++impl_->last_id;
}

bool json_rpc_peer::extend(std::int64_t id)
{
    const auto found = impl_->calls.find(id);
    if (found == impl_->calls.end()) return false;
    // The queue asks for the new time when the old one has come.
    found->second->moved = impl_->time->now();
    return true;
}

bool json_rpc_peer::abort_inbound(const json& id)
{
    const std::shared_ptr<impl::task>* found = impl_->serving(id);
    if (!found) return false;
    const std::shared_ptr<impl::task> t = *found;
    impl_->abort(t);
    return true;
}

awaitable<void> json_rpc_peer::close()
{
    return close_body(impl_);
}
bool json_rpc_peer::open() const noexcept
{
    return !impl_->closed;
}
message_link& json_rpc_peer::link() noexcept
{
    return *impl_->link;
}
void json_rpc_peer::set_batches(bool taken) noexcept
{
    impl_->options.batches = taken;
}

json_rpc_stats json_rpc_peer::stats() const noexcept
{
    json_rpc_stats s = impl_->counts;
    s.pending = impl_->calls.size();
    s.handlers = impl_->handlers;
    return s;
}

}  // namespace reagent::inline v0
