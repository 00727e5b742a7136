#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/json.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// Append-only JSON lines (spec/governance.md §7): mode 0600, `O_APPEND`, at most 3500 bytes a line, redacted. All lines of a loop turn go out in one
/// `writev`. A handle; thread safe. A failed write throws `error(errc::audit_failed)`.
class audit_log {
public:
    audit_log() noexcept = default;  ///< writes nothing
    static audit_log in_memory(clock_ptr clock = {});
    /// Makes the directory (0700) and the file. Throws `config_error` naming the path.
    static audit_log file(std::string path, clock_ptr clock = {});
    explicit operator bool() const noexcept { return impl_ != nullptr; }
    void write(std::vector<json> lines);
    /// Parsed lines of an in-memory or file log; unreadable lines are skipped and counted.
    std::vector<json> read(std::size_t* skipped = nullptr) const;
    const clock_ptr& clock() const noexcept;

private:
    struct impl;
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0
