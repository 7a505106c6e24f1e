// The part of the stable ABI where exceptions of C++ pass, and CUDA's runtime for libraries that were built with it.

#include <cstdint>
#include <cstdio>
#include <exception>

extern "C" {

// Calls a library's function. Gives 1 after an exception, whose text is written to `what`.
int taeda_guarded(void (*f)(uint64_t*, uint64_t, uint64_t), uint64_t* stack, uint64_t n, uint64_t m, char* what,
                  size_t size) {
    try {
        f(stack, n, m);
        return 0;
    } catch (const std::exception& error) {
        std::snprintf(what, size, "%s", error.what());
    } catch (...) {
        std::snprintf(what, size, "an exception that is no std::exception");
    }
    return 1;
}

int torch_parallel_for(int64_t begin, int64_t end, int64_t, void (*f)(int64_t, int64_t, void*), void* context) {
    if (begin < end) f(begin, end, context);
    return 0;
}

// Libraries that are built with CUDA register their kernels as they are loaded. `elf.prepared` gives these names to the
// functions of the runtime.
static void* nothing[1];
void** __noneRegisterFatBinary(void*) { return nothing; }

#define NO_DEVICE(name) int name(void) { return 100; }  // cudaErrorNoDevice
NO_DEVICE(__noneGetKernel)
NO_DEVICE(__noneInitModule)
NO_DEVICE(__noneLaunchKernel)
NO_DEVICE(__nonePopCallConfiguration)
NO_DEVICE(__nonePushCallConfiguration)
NO_DEVICE(__noneRegisterFatBinaryEnd)
NO_DEVICE(__noneRegisterFunction)
NO_DEVICE(__noneRegisterVar)
NO_DEVICE(__noneUnregisterFatBinary)

}  // extern "C"
