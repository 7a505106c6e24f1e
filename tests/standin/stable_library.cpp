// A library that calls the stable ABI by its C functions, as PyTorch's headers do.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

extern "C" {
typedef void *handle;
typedef uint64_t word;
int aoti_torch_library_init_def(const char *, const char *, uint32_t, handle *);
int aoti_torch_library_init_impl(const char *, const char *, const char *, uint32_t, handle *);
int aoti_torch_library_def(handle, const char *);
int torch_library_impl(handle, const char *, void (*)(word *, uint64_t, uint64_t), uint64_t);
int aoti_torch_delete_tensor_object(handle);
int aoti_torch_get_dim(handle, int64_t *);
int aoti_torch_get_numel(handle, int64_t *);
int aoti_torch_get_sizes(handle, int64_t **);
int aoti_torch_get_strides(handle, int64_t **);
int aoti_torch_get_dtype(handle, int32_t *);
int32_t aoti_torch_dtype_float32();
int32_t aoti_torch_device_type_cpu();
int32_t aoti_torch_layout_strided();
int torch_get_mutable_data_ptr(handle, void **);
int torch_call_dispatcher(const char *, const char *, word *, uint64_t);
const char *torch_exception_get_what();
int torch_new_list_reserve_size(size_t, handle *);
int torch_list_size(handle, size_t *);
int torch_list_get_item(handle, size_t, word *);
int torch_list_push_back(handle, word);
int torch_delete_list(handle);
int torch_new_string_handle(const char *, size_t, handle *);
int torch_string_c_str(handle, const char **);
int torch_delete_string(handle);
int torch_new_stable_ivalue(word **);
int torch_delete_stable_ivalue(word *);
int torch_parallel_for(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void *), void *);
int torch_from_blob(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t, int32_t, handle *,
                    int32_t, const uint8_t *, int64_t, void (*)(void *, void *), void *);
#ifdef CUDA
int cudaGetDevice(int *);
void **__cudaRegisterFatBinary(void *);
static void **registered = __cudaRegisterFatBinary(nullptr);
int unused(int *device) { return cudaGetDevice(device); }
#endif
}

static void check(int bad) {
    if (bad) throw std::runtime_error(torch_exception_get_what());
}

static float *elements(handle t, int64_t *n) {
    int32_t dtype;
    check(aoti_torch_get_dtype(t, &dtype));
    if (dtype != aoti_torch_dtype_float32()) throw std::runtime_error("scale: expected float32");
    void *data;
    check(aoti_torch_get_numel(t, n));
    check(torch_get_mutable_data_ptr(t, &data));
    return (float *)data;
}

// scale(Tensor(a!) x, float by) -> (): in place, by pieces
struct Scaled {
    float *data, by;
};
static void scale(word *stack, uint64_t, uint64_t) {
    int64_t n;
    double by;
    std::memcpy(&by, &stack[1], 8);
    handle x = (handle)stack[0];
    try {
        Scaled s = {elements(x, &n), (float)by};
        check(torch_parallel_for(0, n, 1, [](int64_t i, int64_t end, void *at) {
            for (; i < end; i++) ((Scaled *)at)->data[i] *= ((Scaled *)at)->by;
        }, &s));
    } catch (...) {
        aoti_torch_delete_tensor_object(x);
        throw;
    }
    aoti_torch_delete_tensor_object(x);
}

// describe(Tensor x, Tensor? y, int[] n, str text, bool loud, int? more) -> (str, int[], int?, float)
static void describe(word *stack, uint64_t, uint64_t) {
    handle x = (handle)stack[0], list = (handle)stack[2], text = (handle)stack[3];
    int64_t d, *sizes, *strides;
    check(aoti_torch_get_dim(x, &d));
    check(aoti_torch_get_sizes(x, &sizes));
    check(aoti_torch_get_strides(x, &strides));
    const char *given;
    check(torch_string_c_str(text, &given));
    std::string made = std::string(given) + (stack[4] ? "!" : "") + (stack[1] ? " y" : "");
    for (int64_t i = 0; i < d; i++) made += " " + std::to_string(sizes[i]) + ":" + std::to_string(strides[i]);
    torch_delete_string(text);
    if (stack[1]) {
        aoti_torch_delete_tensor_object((handle) * (word *)stack[1]);
        torch_delete_stable_ivalue((word *)stack[1]);
    }
    size_t n;
    handle doubled;
    check(torch_list_size(list, &n));
    check(torch_new_list_reserve_size(n, &doubled));
    for (size_t i = 0; i < n; i++) {
        word item;
        check(torch_list_get_item(list, i, &item));
        check(torch_list_push_back(doubled, 2 * item));
    }
    torch_delete_list(list);
    aoti_torch_delete_tensor_object(x);
    word *more = (word *)stack[5];
    handle said;
    check(torch_new_string_handle(made.c_str(), made.size(), &said));
    stack[0] = (word)said;
    stack[1] = (word)doubled;
    if (more) {  // goes back with another value
        *more += 1;
    }
    stack[2] = (word)more;
    double half = 0.5;
    std::memcpy(&stack[3], &half, 8);
}

// total(Tensor x, int dim) -> Tensor: by a native op
static void total(word *stack, uint64_t, uint64_t) {
    handle dims;
    check(torch_new_list_reserve_size(1, &dims));
    check(torch_list_push_back(dims, stack[1]));
    word *given, call[4];
    check(torch_new_stable_ivalue(&given));
    *given = (word)dims;
    call[0] = stack[0];
    call[1] = (word)given;
    call[2] = 0;
    call[3] = 0;
    check(torch_call_dispatcher("aten::sum", "dim_IntList", call, 0));
    stack[0] = call[0];
}

// lost(Tensor x) -> Tensor: an op that there is not
static void lost(word *stack, uint64_t, uint64_t) {
    check(torch_call_dispatcher("nobody::knows", "", stack, 0));
}

// given(int n) -> Tensor: over memory of the library; given_back() -> int
static int64_t ended = 0;
static void given(word *stack, uint64_t, uint64_t) {
    int64_t n = (int64_t)stack[0], one = 1;
    float *data = (float *)std::malloc(n * sizeof(float));
    for (int64_t i = 0; i < n; i++) data[i] = (float)i;
    handle made;
    check(torch_from_blob(data, 1, &n, &one, 0, aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), 0, &made,
                          aoti_torch_layout_strided(), nullptr, 0, [](void *at, void *) {
        std::free(at);
        ended++;
    }, nullptr));
    stack[0] = (word)made;
}
static void given_back(word *stack, uint64_t, uint64_t) { stack[0] = (word)ended; }

static struct Registered {
    Registered() {
        handle own, cpu, meta;
        aoti_torch_library_init_impl("stable_test", "CPU", __FILE__, __LINE__, &cpu);  // may come before the ops
        torch_library_impl(cpu, "scale", scale, 0);
        torch_library_impl(cpu, "describe", describe, 0);
        torch_library_impl(cpu, "total", total, 0);
        torch_library_impl(cpu, "lost", lost, 0);
        torch_library_impl(cpu, "given", given, 0);
        torch_library_impl(cpu, "given_back", given_back, 0);
        aoti_torch_library_init_def("stable_test", __FILE__, __LINE__, &own);
        aoti_torch_library_def(own, "scale(Tensor(a!) x, float by) -> ()");
        aoti_torch_library_def(own, "describe(Tensor x, Tensor? y, int[] n, str text, bool loud=False, int? more=None)"
                                    " -> (str, int[], int?, float)");
        aoti_torch_library_def(own, "total(Tensor x, int dim) -> Tensor");
        aoti_torch_library_def(own, "lost(Tensor x) -> Tensor");
        aoti_torch_library_def(own, "given(int n) -> Tensor");
        aoti_torch_library_def(own, "given_back() -> int");
    }
} registered_ops;
