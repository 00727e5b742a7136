#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/json.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

/// Append-only JSON lines (spec/governance.md §7): mode 0600, `O_APPEND`, at most 3500 bytes a line, redacted. A handle; thread safe, whole lines
/// only, whoever else appends to the file.
class audit_log {
public:
    /// Longest line of a file with its newline; longer ones are cut by the four steps of spec/governance.md §7.
    static constexpr std::size_t max_line_bytes = 3500;

    audit_log() noexcept = default;  ///< writes nothing
    /// Keeps its lines whole, and for ever.
    static audit_log in_memory(clock_ptr clock = {});
    /// Makes the directory (0700) and the file. Throws `config_error` naming the path.
    static audit_log file(std::string path, clock_ptr clock = {});
    explicit operator bool() const noexcept { return impl_ != nullptr; }
    /// Redacts, stamps (`ts`, when a line has none) and appends all lines with one `writev`. A failed or short write throws
    /// `error(errc::audit_failed)`; after a short one the next line starts with a newline.
    void write(std::vector<json> lines) const;
    /// Parsed lines of an in-memory or file log, in order; torn lines are skipped and counted. Throws `error(errc::audit_failed)` when the
    /// file cannot be read.
    std::vector<json> read(std::size_t* skipped = nullptr) const;
    const clock_ptr& clock() const noexcept;

    /// Empty for a log in memory.
    const std::string& path() const noexcept;

private:
    struct impl;
    explicit audit_log(std::shared_ptr<impl> i) noexcept : impl_(std::move(i)) {}
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0
