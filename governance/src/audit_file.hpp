#pragma once
#include <string>
#include <string_view>

#include <sys/types.h>
#include <sys/uio.h>

namespace reagent::inline v0::governance_detail {

/// An append-only descriptor that other processes may share: whole lines by one `writev` each time. Not thread safe; the log locks.
class audit_file {
public:
    using write_function = ssize_t (*)(int, const iovec*, int);
    /// Owns `fd`. `torn`: the file does not end with a newline.
    audit_file(int fd, std::string path, bool torn, write_function write = &::writev) noexcept;
    audit_file(const audit_file&) = delete;
    audit_file& operator=(const audit_file&) = delete;
    ~audit_file();
    /// Makes the directories (0700) and the file (0600). Throws `config_error` naming the path.
    static int open(const std::string& path, bool& torn);
    /// Throws `error(errc::audit_failed)` unless every byte was written.
    void append(std::string_view text);
    const std::string& path() const noexcept { return path_; }

private:
    int fd_;
    std::string path_;
    bool torn_;
    write_function write_;
};

}  // namespace reagent::inline v0::governance_detail
