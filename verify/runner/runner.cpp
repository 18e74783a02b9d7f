// The runner: loads a candidate, calls it on arrays that the judge made, and hands back raw bytes and times. It decides nothing.
//
// Usage: runner CONTROL REPLIES DEVICE KERNELS RUNTIME. Commands are lines on the descriptor CONTROL, each ending with a nonce;
// every answer is one line on REPLIES that begins with it. What the candidate prints goes to the runner's own stdout and is
// never read for an answer.
//
//   hello N                                  -> N ready CALLS… device memory and cache sizes
//   load LIBRARY FUNCTION ABI N              -> N loaded | N error load WORDS
//   calls INDEX ARRAYS OUTPUTS N             -> N calls COUNT
//   run CALL SLOTS FLUSH DELAY_NS RESTORE SEED N -> N begin, N end, N ran key=value… | N error STAGE NAME
//   fetch SLOT N                             -> N fetched         (the arrays of the last run, into OUTPUTS)
//   peaks N                                  -> N peaks key=value…
//   quit N                                   -> N end COUNT       (runs done), then the runner ends
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <ctime>
#include <sstream>

#include "arena.h"
#include "watch.h"

using namespace regraph;

namespace {

double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

struct Digest {
    unsigned long long first, second;
    bool operator!=(const Digest& o) const { return first != o.first || second != o.second; }
};

struct Pristine {  // a call's inputs and poison, on the device (abi device) or in the mapped file (abi host)
    std::vector<CUdeviceptr> arrays;
    Digest inputs{};
};

class Runner {
   public:
    Runner(int replies, int device, const char* kernels, const char* cudart) : arena_(driver_), replies_(replies) {
        CUdevice handle;
        CUcontext context;
        driver_.must(driver_.cuInit_(0), "cuInit");
        driver_.must(driver_.cuDeviceGet_(&handle, device), "cuDeviceGet");
        driver_.must(driver_.cuDevicePrimaryCtxRetain_(&context, handle), "context");
        driver_.must(driver_.cuCtxSetCurrent_(context), "context");
        driver_.must(driver_.cuDeviceGetAttribute_(&l2_, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, handle), "L2 size");
        driver_.must(driver_.cuDeviceGetAttribute_(&multiprocessors_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle), "multiprocessors");
        CUmodule module;
        driver_.must(driver_.cuModuleLoad_(&module, kernels), "our kernels");
        struct { CUfunction* f; const char* name; } wanted[] = {{&digest_, "digest"}, {&overwritten_, "overwritten"}, {&delay_, "delay"},
                                                               {&copy_, "copy"}, {&empty_, "empty"}, {&multiply_add_, "multiply_add"}};
        for (auto& w : wanted) driver_.must(driver_.cuModuleGetFunction_(w.f, module, w.name), w.name);
        driver_.must(driver_.cuEventCreate_(&begin_, CU_EVENT_DEFAULT), "event");
        driver_.must(driver_.cuEventCreate_(&end_, CU_EVENT_DEFAULT), "event");
        flush_bytes_ = std::max<uint64_t>(2ull * l2_, 64ull << 20);
        driver_.must(driver_.cuMemAlloc_(&flush_, flush_bytes_), "flush buffer");
        driver_.must(driver_.cuMemAlloc_(&scratch_, 16 * kScratch), "scratch");
        runtime = dlopen(cudart, RTLD_NOW | RTLD_GLOBAL);
        if (!runtime) fault("no CUDA runtime", dlerror());
    }

    void answer(const std::string& line) {
        std::string text = nonce_ + " " + line + "\n";
        for (size_t done = 0; done < text.size();) {
            ssize_t n = write(replies_, text.data() + done, text.size() - done);
            if (n <= 0) std::_Exit(71);
            done += n;
        }
    }

    // One command; false when the runner is to end.
    bool obey(const std::string& line) {
        std::istringstream words(line);
        std::string verb;
        words >> verb;
        if (verb == "load") {
            std::string library, function, abi;
            words >> library >> function >> abi >> nonce_;
            load(library, function, abi == "host");
        } else if (verb == "calls") {
            std::string index, arrays, outputs;
            words >> index >> arrays >> outputs >> nonce_;
            read_calls(index, arrays, outputs);
        } else if (verb == "run") {
            int call = 0, slots = 0, flush = 0, restore = 1;
            uint64_t delay = 0, seed = 0;
            words >> call >> slots >> flush >> delay >> restore >> seed >> nonce_;
            if (call < 0 || call >= (int)calls_.size() || slots < 1) fault("bad command", line.c_str());
            if (restore ? !restore_state() : !forget_counts()) return failed("run", "the device no longer answers");
            return run(call, slots, flush, delay, seed);
        } else if (verb == "fetch") {
            int slot = 0;
            words >> slot >> nonce_;
            fetch(slot);
        } else if (verb == "hello") {
            words >> nonce_;
            size_t free = 0, total = 0;
            driver_.must(driver_.cuMemGetInfo_(&free, &total), "memory");
            answer("ready l2=" + std::to_string(l2_) + " free=" + std::to_string(free) + " total=" + std::to_string(total) +
                   " multiprocessors=" + std::to_string(multiprocessors_));
        } else if (verb == "peaks") {
            words >> nonce_;
            peaks();
        } else if (verb == "quit") {
            words >> nonce_;
            answer("end " + std::to_string(runs_));
            return false;
        } else {
            fault("unknown command", line.c_str());
        }
        return true;
    }

   private:
    static constexpr int kScratch = 4096;

    void load(const std::string& library, const std::string& function, bool host) {
        void* candidate = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!candidate) return answer(std::string("error load ") + dlerror());
        function_ = (Function)dlsym(candidate, function.c_str());
        if (!function_) return answer(std::string("error load no ") + function);
        host_ = host;
        remember_state(library);
        if (const char* error = runtime_error()) return answer(std::string("error load ") + error);
        answer("loaded");
    }

    void read_calls(const std::string& index, const std::string& arrays, const std::string& outputs) {
        for (auto& p : pristine_)
            for (auto a : p.arrays) driver_.cuMemFree_(a);
        calls_.clear(), pristine_.clear();
        if (mapped_) munmap(mapped_, mapped_bytes_);
        mapped_ = nullptr;
        FILE* file = std::fopen(index.c_str(), "r");
        int data = open(arrays.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat status;
        if (!file || data < 0 || fstat(data, &status)) fault("the calls cannot be read", index.c_str());
        mapped_bytes_ = status.st_size;
        if (mapped_bytes_) mapped_ = (char*)mmap(nullptr, mapped_bytes_, PROT_READ, MAP_PRIVATE, data, 0);
        if (mapped_ == MAP_FAILED) fault("the arrays cannot be mapped", arrays.c_str());
        close(data);
        Arguments call;
        while (read_call(file, call)) calls_.push_back(call);
        std::fclose(file);
        pristine_.resize(calls_.size());
        outputs_ = outputs;
        answer("calls " + std::to_string(calls_.size()));
    }

    void launch(CUfunction kernel, unsigned blocks, unsigned threads, void** arguments) {
        driver_.must(driver_.cuLaunchKernel_(kernel, blocks, 1, 1, threads, 1, 1, 0, 0, arguments, nullptr), "our own kernel");
    }

    void digest(CUdeviceptr data, uint64_t bytes, CUdeviceptr out) {
        if (!bytes) return;
        void* arguments[] = {&data, &bytes, &out};
        launch(digest_, (unsigned)std::min<uint64_t>((bytes + 4095) / 4096, 4096), 256, arguments);
    }

    // The call's inputs and poison on the device, and the digest of its inputs.
    Pristine& pristine(int index) {
        Pristine& p = pristine_[index];
        const Arguments& call = calls_[index];
        if (!p.arrays.empty() || host_) return p;
        driver_.must(driver_.cuMemsetD32Async_(scratch_, 0, 4, 0), "scratch");
        for (auto& a : call) {
            if (a.kind < Argument::Read) continue;
            CUdeviceptr data = 0;
            CUresult result = driver_.cuMemAlloc_(&data, padded(std::max<uint64_t>(a.bytes, 1)));
            if (result != CUDA_SUCCESS) fault("no device memory for the inputs", driver_.name(result));
            if (a.bytes) driver_.must(driver_.cuMemcpyHtoD_(data, mapped_ + a.offset, a.bytes), "inputs");
            if (a.kind == Argument::Read) digest(data, a.bytes, scratch_);
            p.arrays.push_back(data);
        }
        driver_.must(driver_.cuMemcpyDtoH_(&p.inputs, scratch_, sizeof(Digest)), "digest");
        return p;
    }

    // Fresh inputs and poison into every slot; an output's poison is shifted, so that it differs from call to call.
    void fill_slots(int index, std::mt19937_64& random) {
        Pristine& p = pristine(index);
        for (auto& slot : arena_.pointers) {
            int k = 0;
            for (auto& a : calls_[index]) {
                if (a.kind < Argument::Read) continue;
                CUdeviceptr to = (CUdeviceptr)slot[k], from = p.arrays[k];
                ++k;
                if (!a.bytes) continue;
                uint64_t shift = a.kind == Argument::Poison && a.bytes > 64 ? random() % (a.bytes / 16) * 16 : 0;
                driver_.must(driver_.cuMemcpyDtoDAsync_(to, from + shift, a.bytes - shift, 0), "inputs");
                if (shift) driver_.must(driver_.cuMemcpyDtoDAsync_(to + a.bytes - shift, from, shift, 0), "inputs");
            }
        }
    }

    // Ends the runner after a failure that the device does not come back from.
    bool failed(const char* stage, const char* name) {
        answer(std::string("error ") + stage + " " + name);
        return false;
    }

    bool run(int index, int slots, int flush, uint64_t delay, uint64_t seed) {
        if (host_) return run_host(index, seed);
        std::mt19937_64 random(seed);
        const Arguments& call = calls_[index];
        pristine(index);
        arena_.place(call, slots, random);
        if (delay) {
            void* arguments[] = {&delay};
            launch(delay_, 1, 1, arguments);
        }
        fill_slots(index, random);
        if (!delay) driver_.must(driver_.cuStreamSynchronize_(0), "inputs");
        std::vector<Frame> frames;
        for (auto& slot : arena_.pointers) frames.emplace_back(call, slot.data());
        if (flush) flush_cache();
        answer("begin");
        try {
            return time_calls(index, slots, frames, flush || delay);
        } catch (const DriverError& error) {
            return failed("run", error.name);
        }
    }

    // `digests_first` reads the outputs in the default stream's order; else the clock is stopped before any of our own work.
    bool time_calls(int index, int slots, const std::vector<Frame>& frames, bool digests_first) {
        double started = now();
        driver_.must(driver_.cuEventRecord_(begin_, 0), "event");
        for (auto& frame : frames) frame.call(function_);
        driver_.must(driver_.cuEventRecord_(end_, 0), "event");
        if (const char* error = runtime_error()) return failed("launch", error);
        // What the default stream has not done by now does not count: digests are taken in its order.
        if (digests_first) enqueue_digests(calls_[index]);
        CUresult result = driver_.cuEventSynchronize_(end_);
        if (result != CUDA_SUCCESS) return failed("run", driver_.name(result));
        double ended = now();
        answer("end");
        bool busy = streams_busy();
        if (!digests_first) enqueue_digests(calls_[index]);
        result = driver_.cuStreamSynchronize_(0);
        if (result == CUDA_SUCCESS) result = driver_.cuCtxSynchronize_();
        if (result != CUDA_SUCCESS) return failed("run", driver_.name(result));
        float milliseconds = 0;
        driver_.must(driver_.elapsed(&milliseconds, begin_, end_), "elapsed time");
        report(index, slots, milliseconds * 1e-3, ended - started, busy);
        return true;
    }

    void flush_cache() {
        if (driver_.reset_l2) driver_.reset_l2();
        driver_.must(driver_.cuMemsetD32Async_(flush_, (unsigned)++flushes_, flush_bytes_ / 4, 0), "flush");
    }

    // scratch: per slot the inputs' digest and the outputs'; then one count of overwritten words.
    void enqueue_digests(const Arguments& call) {
        driver_.must(driver_.cuMemsetD32Async_(scratch_, 0, 4 * kScratch, 0), "scratch");
        for (size_t slot = 0; slot < arena_.pointers.size(); ++slot) {
            int k = 0;
            for (auto& a : call) {
                if (a.kind < Argument::Read) continue;
                digest((CUdeviceptr)arena_.pointers[slot][k++], a.bytes, scratch_ + 16 * (2 * slot + (a.kind != Argument::Read)));
            }
        }
        CUdeviceptr counter = scratch_ + 16 * (kScratch - 1);
        uint32_t value = kFilling;
        for (auto& gap : arena_.gaps) {
            uint64_t words = gap.bytes / 4;
            if (!words) continue;
            void* arguments[] = {&gap.start, &words, &value, &counter};
            launch(overwritten_, (unsigned)std::min<uint64_t>((words + 1023) / 1024, 64), 256, arguments);
        }
    }

    void report(int index, int slots, double device, double host, bool busy) {
        std::vector<Digest> digests(kScratch);
        driver_.must(driver_.cuMemcpyDtoH_(digests.data(), scratch_, 16 * kScratch), "digests");
        int changed = 0;
        std::ostringstream text;
        for (int slot = 0; slot < slots; ++slot) changed += digests[2 * slot] != pristine_[index].inputs;
        text << "ran device_ns=" << (uint64_t)(device * 1e9) << " host_ns=" << (uint64_t)(host * 1e9) << " launches=" << watch.launches
             << " to_host=" << watch.to_host << " to_device=" << watch.to_device << " held=" << held_bytes() << " busy=" << busy
             << " changed=" << changed << " overwritten=" << digests[kScratch - 1].first << " digests=" << std::hex;
        for (int slot = 0; slot < slots; ++slot) text << (slot ? "," : "") << digests[2 * slot + 1].first << "." << digests[2 * slot + 1].second;
        ++runs_;
        last_ = index;
        answer(text.str());
    }

    // abi host: the candidate copies by itself, so its time is the host's, until the device is idle.
    bool run_host(int index, uint64_t seed) {
        std::mt19937_64 random(seed);
        const Arguments& call = calls_[index];
        held_.clear();
        host_pointers_.clear();
        for (auto& a : call) {
            if (a.kind < Argument::Read) continue;
            held_.emplace_back(a.bytes + 8192, (char)0x5a);
            host_pointers_.push_back(held_.back().data() + 64 + random() % 64 * 64);
            if (a.bytes) std::memcpy(host_pointers_.back(), mapped_ + a.offset, a.bytes);
        }
        flush_cache();
        driver_.must(driver_.cuStreamSynchronize_(0), "flush");
        Frame frame(call, host_pointers_.data());
        answer("begin");
        double started = now();
        frame.call(function_);
        if (const char* error = runtime_error()) return failed("launch", error);
        CUresult result = driver_.cuCtxSynchronize_();
        double ended = now();
        answer("end");
        if (result != CUDA_SUCCESS) return failed("run", driver_.name(result));
        ++runs_;
        last_ = index;
        std::ostringstream text;
        text << "ran device_ns=" << (uint64_t)((ended - started) * 1e9) << " host_ns=" << (uint64_t)((ended - started) * 1e9)
             << " launches=" << watch.launches << " to_host=" << watch.to_host << " to_device=" << watch.to_device << " held=" << held_bytes()
             << " busy=0 changed=0 overwritten=0 digests=" << std::hex << runs_ << ".0";
        answer(text.str());
        return true;
    }

    void fetch(int slot) {
        int file = open(outputs_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0) fault("the outputs cannot be written", outputs_.c_str());
        int k = 0;
        std::vector<char> bytes;
        for (auto& a : calls_[last_]) {
            if (a.kind < Argument::Read) continue;
            const char* from;
            if (host_) {
                from = (const char*)host_pointers_[k];
            } else {
                bytes.resize(a.bytes);
                if (a.bytes) driver_.must(driver_.cuMemcpyDtoH_(bytes.data(), (CUdeviceptr)arena_.pointers.at(slot)[k], a.bytes), "outputs");
                from = bytes.data();
            }
            ++k;
            for (uint64_t done = 0; done < a.bytes;) {
                ssize_t n = pwrite(file, from + done, a.bytes - done, a.offset + done);
                if (n <= 0) fault("the outputs cannot be written", outputs_.c_str());
                done += n;
            }
        }
        close(file);
        answer("fetched");
    }

    // Seconds of the fastest of `tries` launches of `kernel`.
    double fastest(CUfunction kernel, unsigned blocks, unsigned threads, void** arguments, int tries) {
        float best = 1e30f, milliseconds = 0;
        for (int k = 0; k < tries; ++k) {
            flush_cache();
            driver_.must(driver_.cuEventRecord_(begin_, 0), "event");
            launch(kernel, blocks, threads, arguments);
            driver_.must(driver_.cuEventRecord_(end_, 0), "event");
            driver_.must(driver_.cuEventSynchronize_(end_), "event");
            driver_.must(driver_.elapsed(&milliseconds, begin_, end_), "elapsed time");
            best = std::min(best, milliseconds);
        }
        return best * 1e-3;
    }

    void peaks() {
        uint64_t bytes = 1ull << 30, count = bytes / 16;
        CUdeviceptr from, to;
        driver_.must(driver_.cuMemAlloc_(&from, bytes), "peaks");
        driver_.must(driver_.cuMemAlloc_(&to, bytes), "peaks");
        driver_.must(driver_.cuMemsetD32Async_(from, 1, bytes / 4, 0), "peaks");
        void* copied[] = {&from, &to, &count};
        double copy_seconds = 1e30;
        for (unsigned blocks : {8u, 16u, 32u, 64u}) copy_seconds = std::min(copy_seconds, fastest(copy_, blocks * multiprocessors_, 512, copied, 8));
        float a = 1.0000001f, b = 1e-7f;
        int rounds = 20000;
        void* multiplied[] = {&to, &a, &b, &rounds};
        unsigned blocks = 8 * multiprocessors_;
        double fma_seconds = fastest(multiply_add_, blocks, 256, multiplied, 4);
        double floor = fastest(empty_, 1, 32, nullptr, 20);
        driver_.cuMemFree_(from), driver_.cuMemFree_(to);
        std::ostringstream text;
        text << "peaks bytes_per_second=" << (uint64_t)(2.0 * bytes / copy_seconds) << " flops_per_second="
             << (uint64_t)(2.0 * 16 * rounds * 256.0 * blocks / fma_seconds) << " floor_ns=" << (uint64_t)(floor * 1e9);
        answer(text.str());
    }

    Driver driver_;
    Arena arena_;
    int replies_, l2_ = 0, multiprocessors_ = 0, last_ = 0;
    uint64_t runs_ = 0, flushes_ = 0, flush_bytes_ = 0, mapped_bytes_ = 0;
    bool host_ = false;
    char* mapped_ = nullptr;
    Function function_ = nullptr;
    CUfunction digest_, overwritten_, delay_, copy_, empty_, multiply_add_;
    CUevent begin_, end_;
    CUdeviceptr flush_, scratch_;
    std::string nonce_ = "-", outputs_;
    std::vector<Arguments> calls_;
    std::vector<Pristine> pristine_;
    std::vector<std::vector<char>> held_;  // abi host: the arrays
    std::vector<void*> host_pointers_;
};

// One line from `control`, byte by byte: nothing of the next command is read before it is wanted.
bool read_line(int control, std::string& line) {
    line.clear();
    for (char c; read(control, &c, 1) == 1;) {
        if (c == '\n') return true;
        line += c;
    }
    return false;
}

}  // namespace

int main(int count, char** words) {
    if (count != 6) return 64;
    int control = std::atoi(words[1]);
    std::string line;
    try {
        Runner runner(std::atoi(words[2]), std::atoi(words[3]), words[4], words[5]);
        while (read_line(control, line))
            if (!runner.obey(line)) std::_Exit(0);
    } catch (const DriverError& error) {
        fault(error.what, error.name);
    }
    std::_Exit(72);  // the judge is gone
}
