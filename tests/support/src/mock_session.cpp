#include "mock_session.hpp"

#include <reagent/base/ascii.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>

namespace reagent::inline v0::testing_detail {

namespace {

std::uint64_t mixed(std::uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

bool is_credential(std::string_view name)
{
    return name == "authorization" || name == "x-api-key" || name == "x-goog-api-key" || name == "api-key" || name == "cookie";
}

std::string fault_name(const mock_fault& f)
{
    if (f.kind == mock_fault_kind::none) return {};
    if (f.kind == mock_fault_kind::status) return std::to_string(f.status != 0 ? f.status : 500);
    return std::string(to_string(f.kind));
}

}  // namespace

mock_shared::mock_shared(any_io_executor executor, testing::mock_options o)
    : ex(std::move(executor)),
      options(std::move(o)),
      clock(options.clock_ ? options.clock_ : clock::system()),
      started(clock->now()),
      ledger(options.input_rate_, options.output_rate_, options.max_journal_, options.max_journal_bytes_),
      pace(ex, clock),
      held(options.fixtures_.size()),
      faulted(options.fixtures_.size())
{}

double mock_shared::ms_since_start() const
{
    return std::chrono::duration<double, std::milli>(clock->now() - started).count();
}

std::int64_t mock_shared::choose(const chat_facts& facts)
{
    for (std::size_t i = 0; i < options.fixtures_.size(); ++i) {
        const testing::mock_match& m = options.fixtures_[i].match;
        if (!holds(m, facts)) continue;
        const std::uint64_t before = held[i]++;
        if (m.sequence_index && *m.sequence_index != before) continue;
        return static_cast<std::int64_t>(i);
    }
    return -1;
}

mock_fault mock_shared::choose_fault(std::int64_t fixture, std::uint64_t sequence)
{
    if (fixture >= 0) {
        const auto i = static_cast<std::size_t>(fixture);
        const mock_fault& own = options.fixtures_[i].fault;
        if (own.kind != mock_fault_kind::none && faulted[i] < own.times) {
            ++faulted[i];
            return own;
        }
    }
    if (options.fault_rates_.empty()) return {};
    double draw = static_cast<double>(mixed(options.seed_ ^ mixed(sequence)) >> 11U) * 0x1.0p-53;
    for (const auto& [fault, share] : options.fault_rates_) {
        if (draw < share) return fault;
        draw -= share;
    }
    return {};
}

void mock_shared::reap()
{
    for (const std::uint64_t number : clients.ended()) {
        const auto found = live.find(number);
        if (found == live.end()) continue;
        const std::shared_ptr<mock_session> session = found->second;
        session->finish("client_fin");
    }
}

mock_session::mock_session(std::shared_ptr<mock_shared> shared, raw_wire wire, std::uint64_t number)
    : shared_(std::move(shared)), wire_(std::move(wire)), number_(number)
{}

void mock_session::handle(server_request&& request)
{
    wire_.on_peer_end([weak = weak_from_this()](peer_end how) {
        if (const auto self = weak.lock()) self->finish(how == peer_end::fin ? "client_fin" : how == peer_end::reset ? "client_rst" : "stopped");
    });
    const std::string path(request.path());
    const bool get = request.method == "GET";
    answer_plan p;
    if (path == "/health" && get) {
        p = plan_body(200, "application/json", R"({"status":"ok"})", request.keep_alive);
    } else if (path == "/__stats" && get) {
        p = plan_body(200, "application/json", shared_->ledger.stats().to_json().dump(), request.keep_alive);
    } else if (path == "/__journal" && get) {
        std::string lines;
        for (const mock_entry& e : shared_->ledger.journal()) lines += e.to_json().dump() + '\n';
        p = plan_body(200, "application/x-ndjson", lines, request.keep_alive);
    } else {
        entry_ = std::make_shared<mock_entry>();
        entry_->sequence = shared_->ledger.next_sequence();
        entry_->connection = request.connection;
        entry_->arrival_ms = shared_->ms_since_start();
        entry_->method = request.method;
        entry_->path = path;
        for (std::size_t i = 0; i < request.fields.size(); ++i) {
            std::string name = to_lower(request.fields[i].first);
            const bool secret = is_credential(name);
            entry_->headers.emplace_back(std::move(name), secret ? "***" : request.fields[i].second);
        }
        const std::optional<mock_route> route = route_of(path);
        if (route && request.method == "POST") return chat(request, *route);
        const mock_wire& wire = route ? *route->wire : chat_wire;
        if (path == "/v1/models" && get) {
            json data = json::array();
            std::vector<std::string> names = {"mock"};
            for (const mock_fixture& f : shared_->options.fixtures_) {
                if (f.match.model && std::find(names.begin(), names.end(), *f.match.model) == names.end()) names.push_back(*f.match.model);
            }
            for (const std::string& name : names) {
                data.push_back(json::object().set("id", name).set("object", "model").set("created", 1'750'000'000).set("owned_by", "mock"));
            }
            p = plan_body(200, "application/json", json::object().set("object", "list").set("data", std::move(data)).dump(), request.keep_alive);
        } else if (route || path == "/v1/models") {
            p = plan_error(405, wire.error(405, request.method + " is not for " + path, {}, "method_not_allowed"), request.keep_alive);
        } else {
            p = plan_error(404, wire.error(404, "this server has no " + path, {}, "unknown_url"), request.keep_alive);
        }
        entry_->body = std::move(request.body);
        entry_->status = p.status;
        shared_->ledger.arrived(entry_, false);
    }
    if (!request.keep_alive) p.end = plan_end::close;
    begin(std::move(p), {}, {});
}

void mock_session::chat(server_request& request, const mock_route& route)
{
    const testing::mock_options& o = shared_->options;
    chat_facts facts;
    const std::string complaint = read_request(route, request.body, facts);
    const std::shared_ptr<mock_entry>& entry = entry_;
    entry->worst_input = request.body.size();
    entry->worst_output = facts.max_tokens != 0 ? facts.max_tokens : o.default_max_tokens_;
    entry->model = facts.model;
    entry->stream = facts.stream;

    answer_plan p;
    std::chrono::milliseconds latency = o.latency_, gap = o.gap_;
    if (!complaint.empty()) {
        p = plan_error(400, route.wire->error(400, complaint, {}, "bad_request"), request.keep_alive);
    } else {
        entry->fixture = shared_->choose(facts);
        const mock_fault fault = shared_->choose_fault(entry->fixture, entry->sequence);
        entry->fault = fault_name(fault);
        answer_request r;
        r.wire = route.wire;
        r.sequence = entry->sequence;
        r.body_bytes = request.body.size();
        r.max_tokens = entry->worst_output;
        r.chunk_size = o.chunk_size_;
        r.keep_alive = request.keep_alive;
        if (entry->fixture >= 0) {
            const mock_fixture& f = o.fixtures_[static_cast<std::size_t>(entry->fixture)];
            latency = f.latency.value_or(latency);
            gap = f.gap.value_or(gap);
            p = plan_answer(facts, f, fault, r);
        } else {
            p = plan_error(404, route.wire->error(404, "no fixture matches this request", {}, "no_fixture_match"), request.keep_alive);
        }
    }
    if (!request.keep_alive && p.end == plan_end::keep) p.end = plan_end::close;
    entry->body = std::move(request.body);
    entry->status = p.status;
    if (shared_->ledger.would_lead(entry->worst_input, entry->worst_output)) shared_->reap();
    chat_ = true;
    shared_->ledger.arrived(entry, true);
    begin(std::move(p), latency, gap);
    if (over_) return;
    watched_ = wire_.native_handle();
    shared_->clients.add(watched_, number_);
}

void mock_session::begin(answer_plan plan, std::chrono::milliseconds latency, std::chrono::milliseconds gap)
{
    plan_ = std::move(plan);
    // Kept for as long as a slow answer takes.
    plan_.bytes.shrink_to_fit();
    plan_.pieces.shrink_to_fit();
    gap_ = gap;
    sent_ = 0;
    piece_ = 0;
    if (latency.count() > 0) shared_->pace.link(*this, shared_->clock->now() + latency);
    else pump();
}

steady_time mock_session::on_deadline(steady_time)
{
    const auto self = shared_from_this();
    if (!over_) pump();
    return steady_time::max();
}

bool mock_session::pause_after(std::size_t written_to)
{
    if (written_to >= plan_.bytes.size()) return false;
    if (plan_.trickle) {
        if (gap_.count() > 0) {
            shared_->pace.link(*this, shared_->clock->now() + gap_);
        } else {
            asio::post(shared_->ex, [self = shared_from_this()] {
                if (!self->over_) self->pump();
            });
        }
        return true;
    }
    if (gap_.count() == 0 || written_to < plan_.pieces[piece_]) return false;
    ++piece_;
    shared_->pace.link(*this, shared_->clock->now() + gap_);
    return true;
}

void mock_session::pump()
{
    while (sent_ < plan_.bytes.size()) {
        const std::size_t target = plan_.trickle ? sent_ + 1 : gap_.count() > 0 ? plan_.pieces[piece_] : plan_.bytes.size();
        std::size_t n = 0;
        const raw_wire::status status = wire_.try_write(std::string_view(plan_.bytes).substr(sent_, target - sent_), n);
        if (status == raw_wire::status::would_block) {
            wire_.when_writable([self = shared_from_this()] {
                if (!self->over_) self->pump();
            });
            return;
        }
        if (status == raw_wire::status::gone) {
            finish("client_rst");
            return;
        }
        sent_ += n;
        if (pause_after(sent_)) return;
    }
    answered();
}

void mock_session::answered()
{
    switch (plan_.end) {
    case plan_end::stall: return;
    case plan_end::reset: finish("reset", true); return;
    case plan_end::close:
        settle(plan_.full_size > sent_ ? "closed" : "complete");
        wire_.close();
        break;
    case plan_end::keep:
        settle("complete");
        wire_.done();
        break;
    }
    leave();
}

void mock_session::settle(const char* how)
{
    over_ = true;
    if (entry_) {
        // Of an answer that was cut, the part that went out counts; its input was read in any case.
        const std::size_t full = std::max(plan_.full_size, plan_.bytes.size());
        const std::uint64_t told = sent_ >= full ? plan_.output_tokens : plan_.output_tokens * sent_ / std::max<std::size_t>(full, 1);
        const double duration = shared_->ms_since_start() - entry_->arrival_ms;
        shared_->ledger.ended(entry_, chat_, plan_.input_tokens, told, how, sent_, duration);
        if (shared_->options.on_entry_) shared_->options.on_entry_(*entry_);
    }
    entry_.reset();
    plan_ = answer_plan();
}

void mock_session::finish(const char* how, bool with_reset)
{
    if (over_) return;
    const auto self = shared_from_this();  // the map may hold the last reference
    settle(how);
    if (with_reset) wire_.reset();
    else wire_.close();
    leave();
}

void mock_session::leave()
{
    shared_->pace.unlink(*this);
    shared_->clients.remove(watched_, number_);
    shared_->live.erase(number_);
}

}  // namespace reagent::inline v0::testing_detail
