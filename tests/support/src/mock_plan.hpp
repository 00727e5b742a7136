/// What the mock says to a request: decided without I/O.
#pragma once
#include "mock_wire.hpp"

namespace reagent::inline v0::testing_detail {

using testing::mock_fault;
using testing::mock_fault_kind;
using testing::mock_fixture;

/// Whether all conditions but `sequenceIndex` hold.
bool holds(const testing::mock_match& m, const chat_facts& facts);

enum class plan_end : std::uint8_t { keep, close, reset, stall };

/// The bytes of an answer, where they pause, and how the connection goes on.
struct answer_plan {
    int status = 200;
    std::string bytes;
    std::vector<std::size_t> pieces;  ///< ends of what goes out together when paced; the last is the size
    std::size_t full_size = 0;        ///< before a fault cut it; 0 when none did
    bool trickle = false;
    plan_end end = plan_end::keep;
    std::uint64_t input_tokens = 0, output_tokens = 0;
};

struct answer_request {
    const mock_wire* wire = &chat_wire;
    std::uint64_t sequence = 0;
    std::size_t body_bytes = 0;
    std::uint64_t max_tokens = 0;
    std::uint64_t chunk_size = 24;
    bool keep_alive = true;
};

answer_plan plan_answer(const chat_facts& facts, const mock_fixture& fixture, const mock_fault& fault, const answer_request& request);
/// `body`: the JSON of the error as the wire has it.
answer_plan plan_error(int status, std::string_view body, bool keep_alive, std::uint64_t retry_after_s = 0);
answer_plan plan_body(int status, std::string_view content_type, std::string_view body, bool keep_alive);

}  // namespace reagent::inline v0::testing_detail
