#include "circuit_state.hpp"
#include "wrap_world.hpp"

#include <reagent/providers/circuit_breaker.hpp>
#include <reagent/providers/retry.hpp>

namespace {
namespace circuit_test {

using namespace wrap_world_detail;
using providers_detail::circuit_state;
using ::testing::ElementsAre;

/// A script of one letter a step: `s`, `f`, `a` a call that succeeds, fails, or is answered with an error of its own; `n` one that tells nothing;
/// `x` a call that is refused; `p` starts a call and keeps it, `S`, `F` end the one kept; `w` waits until the circuit may be tried again.
std::string phases(std::string_view script)
{
    circuit_state c(3, 60s);
    steady_time now(1h);
    std::optional<providers_detail::circuit_pass> kept;
    std::string out;
    for (const char step : script) {
        if (step == 'w') now += 60s;
        else if (step == 'S') c.succeeded(*kept);
        else if (step == 'F') c.failed(*kept, now);
        else {
            const auto pass = c.admit(now);
            if (pass.has_value() == (step == 'x')) return out + "!";
            if (step == 's') c.succeeded(*pass);
            else if (step == 'f') c.failed(*pass, now);
            else if (step == 'a') c.answered(*pass);
            else if (step == 'n') c.abandoned(*pass);
            else if (step == 'p') kept = pass;
        }
        out += c.phase() == circuit_phase::closed ? 'c' : c.phase() == circuit_phase::open ? 'o' : 'h';
    }
    return out;
}

TEST(CircuitState, Table)
{
    struct row {
        const char* what;
        const char* script;
        const char* phases;
    };
    constexpr row rows[] = {
        {"L08 three failures open it", "fffx", "ccoo"},
        {"L09 a success after the wait closes it", "fffws", "ccooc"},
        {"L09 a failure opens it again, and the wait starts anew", "fffwfxws",
         "ccooooo"
         "c"},
        {"L10 a success clears the count", "ffsff", "ccccc"},
        {"L11 one probe", "fffwpxS",
         "ccoo"
         "hhc"},
        {"L12 errors of the caller do not count", "aaaaa", "ccccc"},
        {"and do not clear the count", "ffaf", "ccco"},
        {"but prove that the service answers", "fffwa", "ccooc"},
        {"a probe that tells nothing makes room for another", "fffwnns", "ccoohhc"},
        {"an old call's failure says nothing", "pfffwsF",
         "cccooc"
         "c"},
        {"an old call's success says nothing", "pfffwfS",
         "cccooo"
         "o"},
        {"closed for one, the count starts anew", "fffwsff",
         "ccoocc"
         "c"},
    };
    for (const row& r : rows) EXPECT_EQ(phases(r.script), r.phases) << r.what;
}

class Circuit : public ::testing::Test {
protected:
    circuit_options options()
    {
        return circuit_options().threshold(2).clock(w.clock).on_change([this](std::string_view key, circuit_phase from, circuit_phase to) {
            changes.push_back(std::string(key) + " " + std::string(to_string(from)) + ">" + std::string(to_string(to)));
        });
    }
    std::vector<std::string> changes;
    world w;
};

TEST_F(Circuit, L08_L09_OpensRefusesAndComesBack)
{
    const circuit_breaker b(options());
    const auto p = scripted_provider::make({failing(refusal(503), 2), scripted_round("ok").times(0)});
    const provider_ptr guarded = with_circuit_breaker(p, b, "k");
    EXPECT_TRUE(w.failure(guarded));
    EXPECT_TRUE(w.failure(guarded));
    EXPECT_EQ(message_of(w.failure(guarded)), "Circuit \"k\" is open");
    EXPECT_EQ(p->requests().size(), 3U);  // started, which sends nothing
    EXPECT_EQ(b.phase("k"), circuit_phase::open);
    EXPECT_EQ(b.phase(), circuit_phase::closed);
    w.clock->advance(60s);
    EXPECT_EQ(w.generate(guarded, asking("hi")).text, "ok");
    EXPECT_THAT(changes, ElementsAre("k closed>open", "k open>half-open", "k half-open>closed"));
}

TEST_F(Circuit, L11_OneProbeAtATime)
{
    circuit_breaker b(options());
    const auto p = scripted_provider::make({failing(refusal(503), 2), scripted_round("ok").delay(w.slow(5s)).times(0)});
    const provider_ptr guarded = with_circuit_breaker(p, b);
    EXPECT_TRUE(w.failure(guarded));
    EXPECT_TRUE(w.failure(guarded));
    w.clock->advance(60s);
    w.io.restart();
    rt::started<generate_result> probe(w.io, guarded->generate(asking("hi"))), second(w.io, guarded->generate(asking("hi")));
    ASSERT_TRUE(rt::run_until(w.io, *w.clock, [&] { return probe.done() && second.done(); }));
    EXPECT_EQ(probe.get().text, "ok");
    EXPECT_EQ(code_of(second.failure()), errc::circuit_open);
}

TEST_F(Circuit, L12_ErrorsOfTheCallerDoNotOpenIt)
{
    const circuit_breaker b(options());
    const provider_ptr p = with_circuit_breaker(scripted_provider::make({failing(refusal(400, false), 0)}), b);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(w.failure(p));
    EXPECT_EQ(b.phase(), circuit_phase::closed);
    const provider_ptr late = with_circuit_breaker(scripted_provider::make({scripted_round().error(timeout_error(errc::deadline, "late")).times(0)}), b);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(w.failure(late));
    EXPECT_EQ(b.phase(), circuit_phase::open);
}

TEST_F(Circuit, ADroppedProbeMakesRoomForAnother)
{
    circuit_breaker b(options());
    const auto p = scripted_provider::make({failing(refusal(503), 2), scripted_round("ok").deltas(3).times(0)});
    const provider_ptr guarded = with_circuit_breaker(p, b);
    EXPECT_TRUE(w.failure(guarded));
    EXPECT_TRUE(w.failure(guarded));
    w.clock->advance(60s);
    w.io.restart();
    {
        const model_call_ptr call = guarded->start(asking("hi"));
        event_batch batch;
        EXPECT_TRUE(rt::complete(w.io, call->read(batch)));
    }
    EXPECT_EQ(b.phase(), circuit_phase::half_open);
    EXPECT_EQ(w.generate(guarded, asking("hi")).text, "ok");
    b.reset();
    EXPECT_EQ(b.phase(), circuit_phase::closed);
}

TEST_F(Circuit, ARefusalIsNoAttempt)
{
    const circuit_breaker b(options().threshold(1));
    const auto p = scripted_provider::make({failing(refusal(503), 0)});
    generate_request request = asking("hi");
    request.log = std::make_shared<attempt_log>(w.clock);
    const retry_options o = retry_options().attempts(2).clock(w.clock).random(always(0.5));
    EXPECT_EQ(code_of(w.failure(with_retry(with_circuit_breaker(p, b), o), request)), errc::circuit_open);
    EXPECT_EQ(request.log->attempts(), 1U);
    EXPECT_THAT(ends_of(request.log->records()), ElementsAre("failed:scripted", "refused:scripted"));
}

TEST_F(Circuit, L17_TheModelIsThatOfTheWrappedProvider)
{
    EXPECT_EQ(with_circuit_breaker(scripted_provider::make({}, "model-x"), circuit_breaker())->model(), "model-x");
}

TEST_F(Circuit, Defaults)
{
    EXPECT_EQ(circuit_options().threshold(), 5U);
    EXPECT_EQ(circuit_options().threshold(0).threshold(), 5U);
    EXPECT_EQ(circuit_options().reset_after(0ms).reset_after(), 60s);
}

}  // namespace circuit_test
}  // namespace
