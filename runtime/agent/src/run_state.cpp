#include "run_state.hpp"

#include <reagent/base/random.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include <utility>

namespace reagent::inline v0::agent_detail {

/// The driver's completion. When a context goes down with the driver inside, nobody calls it and its destructor tells the state.
class run_state::driver_done {
public:
    explicit driver_done(std::shared_ptr<run_state> s) noexcept : state_(std::move(s)) {}
    driver_done(driver_done&&) noexcept = default;
    driver_done& operator=(driver_done&&) = delete;
    ~driver_done()
    {
        if (state_) state_->on_lost();
    }
    void operator()(std::exception_ptr failure)
    {
        const std::shared_ptr<run_state> s = std::move(state_);
        s->on_done(std::move(failure));
    }

private:
    std::shared_ptr<run_state> state_;
};

run_state::run_state(std::shared_ptr<const agent_core> c, any_io_executor ex, run_request r, std::shared_ptr<chat_state> ch)
    : core(std::move(c)),
      executor(std::move(ex)),
      request(std::move(r)),
      run_id(request.id()),
      chat(std::move(ch)),
      reader_cv_(std::make_shared<waiter>(
          executor, [this] { interrupt(); }, [this] { return interrupted_ && !finished(); })),
      driver_cv_(std::make_shared<waiter>(executor))
{
    if (run_id.empty()) run_id = core->options.policy.run_id();
    if (!run_id.empty()) return;
    run_id = random_uuid(core->options.random ? core->options.random : random_source(&random_bits));
}

run_state::~run_state() = default;

std::shared_ptr<run_state> run_state::make(std::shared_ptr<const agent_core> core, any_io_executor ex, run_request request, std::shared_ptr<chat_state> chat)
{
    return std::shared_ptr<run_state>(new run_state(std::move(core), std::move(ex), std::move(request), std::move(chat)));
}

void run_state::launch()
{
    phase_ = phase::started;
    ++core->live_runs;
    asio::co_spawn(executor, drive(shared_from_this()), asio::bind_cancellation_slot(signal_.slot(), driver_done(shared_from_this())));
}

void run_state::on_done(std::exception_ptr failure)
{
    failure_ = std::move(failure);
    phase_ = phase::finished;
    --core->live_runs;
    reader_cv_->notify();
}

void run_state::on_lost() noexcept
{
    phase_ = phase::finished;
    --core->live_runs;
    // Frames are being destroyed: a reader that waits for this run goes with it, else the two would keep each other alive.
    const std::shared_ptr<waiter> cv = reader_cv_;
    cv->drop();
}

awaitable<bool> run_state::read(std::shared_ptr<run_state> self, event_batch* batch)
{
    batch->clear();
    if (!self->spare_.empty()) {
        std::swap(*batch, self->spare_);
        co_return true;
    }
    if (!self->finished()) {
        self->ready_ = false;
        self->reader_ = batch;
        if (self->phase_ == phase::idle) self->launch();
        else self->driver_cv_->notify();
        // One wait: `deliver` and the end are the only wake-ups, and an interrupted reader is woken by the end alone.
        if (!self->ready_ && !self->finished()) co_await self->reader_cv_->wait_forwarding();
        self->reader_ = nullptr;
    }
    if (self->interrupted_ && self->finished()) co_return false;
    if (!batch->empty()) co_return true;
    if (self->failure_) std::rethrow_exception(self->failure_);
    co_return false;
}

awaitable<void> run_state::to_end(std::shared_ptr<run_state> self)
{
    const std::function<void(const event_batch&)>& sink = self->request.on_events();
    if (!sink) {
        self->unread();
        co_await join(self);
        if (self->failure_) std::rethrow_exception(self->failure_);
        co_return;
    }
    event_batch batch;
    for (;;) {
        const bool more = co_await read(self, &batch);
        if (!batch.empty()) self->push(sink, batch);
        if (!more) co_return;
    }
}

void run_state::push(const std::function<void(const event_batch&)>& sink, const event_batch& batch)
{
    try {
        sink(batch);
    } catch (...) {
        core->options.log(log_level::warn, "[Loop] on_events threw: " + message_of(std::current_exception()));
    }
}

awaitable<void> run_state::join(std::shared_ptr<run_state> self)
{
    if (self->phase_ == phase::idle) self->launch();
    if (!self->finished()) co_await self->reader_cv_->wait_forwarding();
}

void run_state::interrupt() noexcept
{
    interrupted_ = true;
    cancel();
}

void run_state::cancel() noexcept
{
    if (cancelled_ || finished()) return;
    cancelled_ = true;
    if (phase_ == phase::started) signal_.emit(asio::cancellation_type::terminal);
}

void run_state::stop() noexcept
{
    stop_requested_ = true;
}

void run_state::end_unstarted()
{
    if (phase_ != phase::idle) return;
    fill_unstarted(*this);
    phase_ = phase::finished;
}

void run_state::abandon() noexcept
{
    reading_ = false;
    reader_ = nullptr;
    spare_.clear();
    cancel();
}

void run_state::deliver()
{
    if (reader_ == nullptr || reader_->empty() || interrupted_) return;
    reader_ = nullptr;
    ready_ = true;
    reader_cv_->notify();
}

awaitable<event_batch*> run_state::model_batch()
{
    for (;;) {
        if (!reading_) {
            scratch_.clear();
            co_return &scratch_;
        }
        deliver();
        if (reader_ != nullptr && reader_->empty()) co_return reader_;
        if (reader_ != nullptr) {
            // An interrupted reader takes no more batches; what it holds goes with the cancellation.
            reader_->clear();
            co_return reader_;
        }
        co_await driver_cv_->wait();
    }
}

}  // namespace reagent::inline v0::agent_detail
