#include <reagent/base/error.hpp>
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/openai_codec.hpp>

#include <gtest/gtest.h>

#include <random>

namespace {
namespace encoded_prefix_test {

using namespace reagent;

unsigned encoded = 0;

void encode_text(const void*, std::span<const message_ptr> so_far, std::size_t at, std::string& out)
{
    const message& m = *so_far[at];
    ++encoded;
    if (m.text() == "bad") throw validation_error("bad");
    append_json_string(out, m.text());
}

const message_items texts(&encode_text);

/// Neighbouring tool results are one item, a system message is none.
void encode_group(const void*, std::span<const message_ptr> so_far, std::size_t at, std::string& out)
{
    if (so_far[at]->who == role::system) return;
    out += '[';
    for (std::size_t i = at; i < so_far.size(); ++i) {
        if (i != at) out += '+';
        append_json_string(out, so_far[i]->text());
    }
    out += ']';
}

const message_items groups(&encode_group, [](const message& before, const message& next) { return before.who == role::tool && next.who == role::tool; });

message_ptr random_message(std::mt19937& random)
{
    const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    std::string text(pick(60), 'x');
    for (char& c : text) c = static_cast<char>(pick(3) == 0 ? pick(256) : 'a' + pick(26));
    switch (pick(4)) {
    case 0: return message::user(text);
    case 1: return message::tool_result("id" + std::to_string(pick(9)), text);
    case 2: {
        std::vector<tool_call> calls;
        for (unsigned i = 0; i <= pick(3); ++i) calls.emplace_back("c" + std::to_string(i), "find", json::object().set("q", text));
        return message::assistant("", std::move(calls));
    }
    default: return message::assistant(text);
    }
}

TEST(EncodedPrefix, EncodesOnlyWhatIsNew)
{
    encoded_prefix prefix;
    const int codec = 0;
    transcript t = {message::user("a"), message::user("b")};
    encoded = 0;
    EXPECT_EQ(prefix.encode(&codec, texts, t), R"("a","b")");
    EXPECT_EQ(encoded, 2U);
    t.push_back(message::user("c"));
    EXPECT_EQ(prefix.encode(&codec, texts, t), R"("a","b","c")");
    EXPECT_EQ(encoded, 3U);
    EXPECT_EQ(prefix.reused(), 2U);
    t.erase(t.begin() + 1);
    EXPECT_EQ(prefix.encode(&codec, texts, t), R"("a","c")");
    EXPECT_EQ(encoded, 4U);
    EXPECT_EQ(prefix.reused(), 1U);
    t.clear();
    EXPECT_EQ(prefix.encode(&codec, texts, t), "");
}

TEST(EncodedPrefix, AnotherCodecOrHeadStartsAnew)
{
    encoded_prefix prefix;
    const int one = 0, two = 0;
    const transcript t = {message::user("a")};
    EXPECT_EQ(prefix.begin_body(&one, texts, "H", t), R"(H"a")");
    prefix.begin_body(&one, texts, "H", t) += "tail";
    EXPECT_EQ(prefix.begin_body(&one, texts, "H", t), R"(H"a")");
    EXPECT_EQ(prefix.reused(), 1U);
    EXPECT_EQ(prefix.begin_body(&two, texts, "H", t), R"(H"a")");
    EXPECT_EQ(prefix.reused(), 0U);
    EXPECT_EQ(prefix.begin_body(&two, texts, "I", t), R"(I"a")");
    EXPECT_EQ(prefix.reused(), 0U);
}

TEST(EncodedPrefix, AFailureKeepsNothing)
{
    encoded_prefix prefix;
    const int codec = 0;
    const transcript bad = {message::user("a"), message::user("bad")}, good = {message::user("c")};
    EXPECT_THROW(static_cast<void>(prefix.encode(&codec, texts, bad)), validation_error);
    EXPECT_EQ(prefix.encode(&codec, texts, good), R"("c")");
}

TEST(EncodedPrefix, BodiesEqualThoseFromScratchAfterAnyTrim)
{
    std::mt19937 random(7);
    const openai_codec codec{openai_codec_options()};
    encoded_prefix prefix;
    std::string from_prefix, from_scratch;
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("find", "Look a term up", json::object().set("type", "object"));
    generate_request request;
    std::size_t reused = 0;
    for (int round = 0; round < 400; ++round) {
        transcript& t = request.messages;
        for (unsigned n = static_cast<unsigned>(random() % 4); n > 0; --n) t.push_back(random_message(random));
        if (random() % 3 == 0 && !t.empty()) {
            const auto from = static_cast<std::ptrdiff_t>(random() % t.size());
            const auto many = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(random() % 5), static_cast<std::ptrdiff_t>(t.size()) - from);
            t.erase(t.begin() + from, t.begin() + from + many);
        }
        if (random() % 7 == 0 && !t.empty()) t[random() % t.size()] = random_message(random);
        request.tools = random() % 2 == 0 ? tool_list(tools) : tool_list();
        request.options.max_tokens = random() % 2 == 0 ? std::optional<std::uint64_t>(random() % 1000) : std::nullopt;
        const call_plan plan = codec.plan(request);
        request.prefix = &prefix;
        from_prefix = std::string(codec.encode(request, plan, true, {}, from_scratch).body);
        reused += prefix.reused();
        request.prefix = nullptr;
        ASSERT_EQ(from_prefix, codec.encode(request, plan, true, {}, from_scratch).body) << "round " << round;
    }
    EXPECT_GT(reused, 1000U);
}

TEST(EncodedPrefix, AnItemOfSeveralMessagesGrowsAndShrinks)
{
    encoded_prefix prefix;
    const int codec = 0;
    const auto tool = [](const char* text) { return message::tool_result("id", text); };
    transcript t = {message::system("s"), message::user("a"), tool("1")};
    EXPECT_EQ(prefix.begin_body(&codec, groups, "H", t), R"(H["a"],["1"])");
    t.push_back(tool("2"));
    EXPECT_EQ(prefix.begin_body(&codec, groups, "H", t), R"(H["a"],["1"+"2"])");
    EXPECT_EQ(prefix.reused(), 2U);
    t.push_back(message::user("b"));
    EXPECT_EQ(prefix.begin_body(&codec, groups, "H", t), R"(H["a"],["1"+"2"],["b"])");
    EXPECT_EQ(prefix.reused(), 4U);
    t.erase(t.begin() + 3);
    EXPECT_EQ(prefix.begin_body(&codec, groups, "H", t), R"(H["a"],["1"],["b"])");
    t.erase(t.begin() + 1);
    EXPECT_EQ(prefix.begin_body(&codec, groups, "H", t), R"(H["1"],["b"])");
    std::mt19937 random(11);
    for (int round = 0; round < 400; ++round) {
        for (unsigned n = static_cast<unsigned>(random() % 3); n > 0; --n) t.push_back(random() % 3 == 0 ? message::user("u") : tool("r"));
        if (random() % 2 == 0 && !t.empty()) t.erase(t.begin() + static_cast<std::ptrdiff_t>(random() % t.size()));
        std::string scratch = "H";
        groups.append_to(scratch, &codec, t);
        ASSERT_EQ(prefix.begin_body(&codec, groups, "H", t), scratch) << round;
    }
}

}  // namespace encoded_prefix_test
}  // namespace
