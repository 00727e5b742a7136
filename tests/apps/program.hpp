#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace reagent::apps_test {

/// What the built program did.
class program_result {
public:
    int status = -1;  ///< exit status, or 128 + signal
    std::string out, err;
    /// Lines of standard error.
    std::vector<std::string> messages() const;
};

/// The built program, started with its own environment: nothing of ours but PATH and HOME, and what `set` gives it.
class program {
public:
    explicit program(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}
    /// Another program than ours.
    program(std::string executable, std::vector<std::string> arguments) : executable_(std::move(executable)), arguments_(std::move(arguments)) {}
    ~program();
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    program& set(std::string name, std::string value)
    {
        environment_[std::move(name)] = std::move(value);
        return *this;
    }
    program& input(std::string text)
    {
        input_ = std::move(text);
        return *this;
    }
    /// The input does not end before `close_input`.
    program& keep_input_open()
    {
        input_ends_ = false;
        return *this;
    }
    void close_input() { input_ends_ = true; }

    /// Starts, feeds the input, reads both outputs to their end. A minute at most, then it is killed.
    program_result run();
    /// Starts and goes on; `wait` ends it.
    void start();
    /// Reads standard output until `text` has come, for at most half a minute; whether it has.
    bool wait_for_output(const std::string& text);
    /// The same for standard error.
    bool wait_for_messages(const std::string& text);
    /// Standard output so far.
    const std::string& output() const noexcept { return result_.out; }
    void signal(int number) const;
    program_result wait();
    pid_t id() const noexcept { return pid_; }

private:
    bool wait_for(const std::string& where, const std::string& text);
    bool pump(std::chrono::steady_clock::time_point until);
    std::string executable_;
    std::vector<std::string> arguments_;
    std::map<std::string, std::string> environment_;
    std::string input_;
    bool input_ends_ = true;
    pid_t pid_ = -1;
    int in_ = -1, out_ = -1, err_ = -1;
    program_result result_;
};

/// `reagent` with these arguments, an empty environment and this input.
program_result reagent_run(std::vector<std::string> arguments, std::string input = {});

/// A file with this content, removed at the end.
class scratch_file {
public:
    explicit scratch_file(std::string_view content, std::string_view suffix = ".json");
    ~scratch_file();
    scratch_file(const scratch_file&) = delete;
    scratch_file& operator=(const scratch_file&) = delete;
    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

/// `reagent mock` beside the test.
class mock_process {
public:
    explicit mock_process(std::string_view fixtures, std::vector<std::string> more = {});
    ~mock_process();
    const std::string& base_url() const noexcept { return base_url_; }

private:
    scratch_file fixtures_;
    program mock_;
    std::string base_url_;
};

}  // namespace reagent::apps_test
