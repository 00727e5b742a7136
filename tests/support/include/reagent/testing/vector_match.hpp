#pragma once
#include <reagent/base/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::testing {

/// Why `answer` does not meet `expected`, as `path: what`; empty when it does. `expected` is a subset: objects compare by the members it names,
/// arrays whole, numbers as numbers. Matchers: `{"$contains"}`, `{"$absent":true}`, `{"$re"}` (ECMAScript, anywhere), `{"$len"}` (Unicode scalar values).
std::string vector_mismatch(const json& expected, const json* answer, std::string_view path = "out");

/// One line of a file of cases: `{"id","tag","in","out"}`.
class vector_case {
public:
    std::string id;
    json in, out;
};
/// The cases of a JSON-lines file. Throws `error` for a line that is no case.
std::vector<vector_case> read_vectors(const std::string& path);

}  // namespace reagent::inline v0::testing
