// What a careful user of common libraries gets: libcurl's multi interface on epoll, nlohmann::json for the answers, easy handles kept for ever.
#include "bench_common.hpp"

#include <curl/curl.h>
#include <nlohmann/json.hpp>
#include <sys/epoll.h>

#include <memory>

namespace {

class curl_client;

/// One call after the other on one easy handle.
struct call_loop {
    CURL* easy = nullptr;
    curl_client* owner = nullptr;
    std::string received, text;
};

class curl_client {
public:
    explicit curl_client(const bench::client_flags& flags)
        : flags_(flags),
          measured_(flags, "curl"),
          epoll_(epoll_create1(EPOLL_CLOEXEC)),
          multi_(curl_multi_init()),
          body_(bench::request_body(flags.sse)),
          url_(std::string(flags.tls ? "https" : "http") + "://127.0.0.1:" + std::to_string(flags.port) + "/v1/chat/completions")
    {
        curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &curl_client::on_socket);
        curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
        curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &curl_client::on_timer);
        curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
        curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(flags.in_flight) + 10);
        curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
        for (const char* line : {"Content-Type: application/json", "Authorization: Bearer sk-test", "Expect:"}) headers_ = curl_slist_append(headers_, line);
        for (int i = 0; i < flags.in_flight; ++i) start_loop();
    }

    int run()
    {
        std::vector<epoll_event> ready(1024);
        int running = 0;
        while (!measured_.finished()) {
            const int n = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), wait_ms());
            if (timer_armed_ && bench::monotonic_ns() >= timer_at_) {
                timer_armed_ = false;
                curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
            }
            for (int i = 0; i < n; ++i) {
                const epoll_event& e = ready[static_cast<std::size_t>(i)];
                const int what = (e.events & EPOLLIN ? CURL_CSELECT_IN : 0) | (e.events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                    (e.events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
                curl_multi_socket_action(multi_, e.data.fd, what, &running);
            }
            finish_calls();
        }
        measured_.print();
        return 0;
    }

private:
    void start_loop()
    {
        loops_.push_back(std::make_unique<call_loop>());
        call_loop* loop = loops_.back().get();
        loop->owner = this;
        loop->easy = curl_easy_init();
        curl_easy_setopt(loop->easy, CURLOPT_URL, url_.c_str());
        curl_easy_setopt(loop->easy, CURLOPT_HTTPHEADER, headers_);
        curl_easy_setopt(loop->easy, CURLOPT_POSTFIELDS, body_.c_str());
        curl_easy_setopt(loop->easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(body_.size()));
        curl_easy_setopt(loop->easy, CURLOPT_WRITEFUNCTION, &curl_client::on_bytes);
        curl_easy_setopt(loop->easy, CURLOPT_WRITEDATA, loop);
        curl_easy_setopt(loop->easy, CURLOPT_PRIVATE, loop);
        curl_easy_setopt(loop->easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(loop->easy, CURLOPT_SSL_VERIFYPEER, 0L);  // the mock's certificate is self-signed
        curl_easy_setopt(loop->easy, CURLOPT_SSL_VERIFYHOST, 0L);
        curl_multi_add_handle(multi_, loop->easy);
    }

    int wait_ms() const
    {
        if (!timer_armed_) return 1000;
        return static_cast<int>(std::max<std::int64_t>(0, (timer_at_ - bench::monotonic_ns() + 999'999) / 1'000'000));
    }

    static std::size_t on_bytes(char* bytes, std::size_t size, std::size_t count, void* user)
    {
        auto* loop = static_cast<call_loop*>(user);
        loop->received.append(bytes, size * count);
        if (loop->owner->flags_.sse) loop->owner->read_events(*loop);
        return size * count;
    }

    static int on_socket(CURL*, curl_socket_t socket, int what, void* user, void*)
    {
        auto* self = static_cast<curl_client*>(user);
        epoll_event interest{};
        interest.data.fd = socket;
        if (what == CURL_POLL_REMOVE) {
            epoll_ctl(self->epoll_, EPOLL_CTL_DEL, socket, &interest);
            return 0;
        }
        interest.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
        if (epoll_ctl(self->epoll_, EPOLL_CTL_MOD, socket, &interest) != 0) epoll_ctl(self->epoll_, EPOLL_CTL_ADD, socket, &interest);
        return 0;
    }

    static int on_timer(CURLM*, long timeout_ms, void* user)
    {
        auto* self = static_cast<curl_client*>(user);
        self->timer_armed_ = timeout_ms >= 0;
        self->timer_at_ = bench::monotonic_ns() + timeout_ms * 1'000'000;
        return 0;
    }

    void read_events(call_loop& loop)
    {
        std::size_t begin = 0, end = 0;
        while ((end = loop.received.find("\n\n", begin)) != std::string::npos) {
            std::string_view line(loop.received.data() + begin, end - begin);
            begin = end + 2;
            if (!line.starts_with("data: ")) continue;
            line.remove_prefix(6);
            if (line == "[DONE]") continue;
            const auto event = nlohmann::json::parse(line);
            measured_.count_events(1);
            measured_.stamp(event["created"].get<std::int64_t>());
            loop.text += event["choices"][0]["delta"]["content"].get_ref<const std::string&>();
        }
        loop.received.erase(0, begin);
    }

    void finish_calls()
    {
        int left = 0;
        while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
            if (message->msg != CURLMSG_DONE) continue;
            CURL* easy = message->easy_handle;
            call_loop* loop = nullptr;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, &loop);
            if (message->data.result != CURLE_OK) {
                measured_.call_failed();
            } else {
                if (!flags_.sse) {
                    const auto answer = nlohmann::json::parse(loop->received);
                    measured_.stamp(answer["created"].get<std::int64_t>());
                    loop->text = answer["choices"][0]["message"]["content"].get<std::string>();
                }
                measured_.call_done();
            }
            loop->received.clear();
            loop->text.clear();
            curl_multi_remove_handle(multi_, easy);
            curl_multi_add_handle(multi_, easy);
        }
    }

    const bench::client_flags& flags_;
    bench::measurement measured_;
    int epoll_;
    CURLM* multi_;
    const std::string body_, url_;
    curl_slist* headers_ = nullptr;
    std::vector<std::unique_ptr<call_loop>> loops_;
    bool timer_armed_ = false;
    std::int64_t timer_at_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    const bench::client_flags flags(argc, argv);
    curl_global_init(CURL_GLOBAL_ALL);
    return curl_client(flags).run();  // the process ends: handles and sockets go with it
}
