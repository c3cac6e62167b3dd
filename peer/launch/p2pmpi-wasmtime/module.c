//go:build linux && amd64 && cgo

#define _GNU_SOURCE
#include "module.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "declared.h"

struct module_memory module_memory;
uint64_t module_stack[WORDS];

// What a module's functions may have as their stack, and what the library may have beside that.
enum { STACK = 32 << 20, OWN = 1 << 20, GUARD = 64 << 10 };

static wasmtime_module_t *module;
static wasmtime_linker_t *linker;
static wasmtime_context_t *context;
static wasmtime_instance_t instance;

// The call that goes on, what it has come to, and what it waits for.
static wasmtime_call_future_t *future;
static wasmtime_error_t *failure;
static wasm_trap_t *trap;
static int calls = -1;
static bool answered;

static char *copied(wasm_byte_vec_t *text) {
  char *s = strndup(text->data, text->size);
  wasm_byte_vec_delete(text);
  return s;
}

static char *told(wasmtime_error_t *e) {
  if (e == NULL) return NULL;
  wasm_byte_vec_t text;
  wasmtime_error_message(e, &text);
  wasmtime_error_delete(e);
  return copied(&text);
}

static wasmtime_error_t *memory_grow(void *env, size_t size) {
  (void)env;
  if (size > module_memory.most) return wasmtime_error_new("the module may have no more memory");
  if (mprotect(module_memory.at, size, PROT_READ | PROT_WRITE) != 0) return wasmtime_error_new("there is no more memory");
  module_memory.size = size;
  return NULL;
}

static uint8_t *memory_get(void *env, size_t *size, size_t *capacity) {
  (void)env;
  *size = module_memory.size, *capacity = module_memory.reserved;
  return module_memory.at;
}

// memory_new reserves addresses for all that a module can name, and for what it can name beyond:
// so the processor finds out who strays. The memory is the system's: what comes into it
// later than the module has ended finds it there.
static wasmtime_error_t *memory_new(void *env, const wasm_memorytype_t *type, size_t least, size_t most, size_t reserved,
                                    size_t guard, wasmtime_linear_memory_t *out) {
  (void)env, (void)type, (void)most;
  if (module_memory.at != NULL) return wasmtime_error_new("the module has a memory");
  module_memory.reserved = reserved > least ? reserved : least;
  module_memory.at = mmap(NULL, module_memory.reserved + guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (module_memory.at == MAP_FAILED) return wasmtime_error_new("there are no addresses for the module's memory");
  wasmtime_error_t *e = memory_grow(NULL, least);
  if (e != NULL) {
    wasmtime_error_delete(e);
    return wasmtime_error_new("not enough memory for the module's initial memory");
  }
  *out = (wasmtime_linear_memory_t){.get_memory = memory_get, .grow_memory = memory_grow};
  return NULL;
}

struct room {
  uint8_t *end;
  size_t size;
};

static uint8_t *stack_get(void *env, size_t *size) {
  struct room *r = env;
  *size = r->size;
  return r->end;
}

// stack_new makes a stack as that of a program is: what is not used of it counts as
// nobody's module_memory.
static wasmtime_error_t *stack_new(void *env, size_t size, bool zeroed, wasmtime_stack_memory_t *out) {
  (void)env, (void)zeroed;
  uint8_t *all = mmap(NULL, GUARD + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  struct room *r = malloc(sizeof *r);
  if (all == MAP_FAILED || r == NULL ||
      mmap(all + GUARD, size, PROT_READ | PROT_WRITE,
           MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_GROWSDOWN, -1, 0) == MAP_FAILED)
    return wasmtime_error_new("there is no memory for the module's stack");
  *r = (struct room){all + GUARD + size, size};
  *out = (wasmtime_stack_memory_t){.env = r, .get_stack_memory = stack_get};
  return NULL;
}

// configured returns the engine, made at the first time. What modules may be is what wazero takes: else some would
// run at some peers only.
static wasm_engine_t *configured(void) {
  static wasm_engine_t *engine;
  if (engine != NULL) return engine;
  wasm_config_t *c = wasm_config_new();
  wasmtime_config_cranelift_opt_level_set(c, WASMTIME_OPT_LEVEL_SPEED);
  wasmtime_config_parallel_compilation_set(c, false); // which would take processors that are others'
  wasmtime_config_wasm_exceptions_set(c, false);
  wasmtime_config_wasm_gc_set(c, false);
  wasmtime_config_wasm_function_references_set(c, false);
  wasmtime_config_wasm_memory64_set(c, false);
  wasmtime_config_wasm_multi_memory_set(c, false);
  wasmtime_config_wasm_relaxed_simd_set(c, false);
  wasmtime_config_wasm_tail_call_set(c, false);
  wasmtime_config_wasm_threads_set(c, false);
  wasmtime_config_async_support_set(c, true);
  wasmtime_config_async_stack_size_set(c, STACK + OWN);
  wasmtime_config_max_wasm_stack_set(c, STACK);
  wasmtime_config_memory_init_cow_set(c, false); // which needs memory of the library's own
  wasmtime_config_host_memory_creator_set(c, &(wasmtime_memory_creator_t){.new_memory = memory_new});
  wasmtime_config_host_stack_creator_set(c, &(wasmtime_stack_creator_t){.new_stack = stack_new});
  return engine = wasm_engine_new_with_config(c);
}

char *module_compile(const uint8_t *binary, size_t size, uint8_t **code, size_t *code_size) {
  wasm_byte_vec_t out;
  char *wrong = told(wasmtime_module_new(configured(), binary, size, &module));
  if (wrong == NULL) wrong = told(wasmtime_module_serialize(module, &out));
  if (wrong == NULL) *code = (uint8_t *)out.data, *code_size = out.size;
  return wrong;
}

char *module_load(const uint8_t *code, size_t size) {
  return told(wasmtime_module_deserialize(configured(), code, size, &module));
}

// There are three stacks: that of module_resume, which the caller has from thread to thread; one for the
// library; and that of the module, which the library makes. What runs on the latter two is left
// here, and gone on with.
static jmp_buf outside, inside;
static bool finished;

// leave has module_resume return, and returns when that is called again.
static void leave(void) {
  if (_setjmp(inside) == 0) _longjmp(outside, 1);
}

// library is what runs on the library's stack.
static void library(void) {
  for (;;) {
    finished = wasmtime_call_future_poll(future);
    leave();
  }
}

// enter goes on where it was left, at first with library.
static void enter(void) {
  static ucontext_t first;
  if (_setjmp(outside) != 0) return;
  if (first.uc_stack.ss_sp != NULL) _longjmp(inside, 1);
  getcontext(&first);
  first.uc_stack.ss_size = OWN;
  first.uc_stack.ss_sp = malloc(OWN);
  makecontext(&first, library, 0);
  setcontext(&first);
}

// Which arguments of a function have 64 bits: one for each.
static uint32_t wide[FUNCTIONS];

// called is every function of the host that does not wait: the library knows nothing of what becomes of
// the call, which costs half of waits. So it has to go on on the same thread.
static wasm_trap_t *called(void *number, wasmtime_caller_t *caller, wasmtime_val_raw_t *values, size_t n) {
  (void)caller;
  calls = (int)(intptr_t)number;
  for (size_t i = 0; i < n; i++)
    module_stack[i] = wide[calls] >> i & 1 ? (uint64_t)values[i].i64 : (uint32_t)values[i].i32;
  leave();
  if (n > 0) values[0].i32 = (int32_t)module_stack[0];
  return NULL;
}

// done says whether the call is answered that the module waits for, and has it return.
static bool done(void *env) {
  if (!answered) return false;
  wasmtime_val_t *result = env;
  if (result != NULL) result->kind = WASMTIME_I32, result->of.i32 = (int32_t)module_stack[0];
  return true;
}

// waits is every function of the host that may wait: the library stops the module there, which can go on on any
// thread.
static void waits(void *number, wasmtime_caller_t *caller, const wasmtime_val_t *args, size_t n, wasmtime_val_t *results,
                   size_t returns, wasm_trap_t **wrong, wasmtime_async_continuation_t *then) {
  (void)caller, (void)wrong;
  answered = false;
  for (size_t i = 0; i < n; i++)
    module_stack[i] = args[i].kind == WASMTIME_I64 ? (uint64_t)args[i].of.i64 : (uint32_t)args[i].of.i32;
  calls = (int)(intptr_t)number;
  *then = (wasmtime_async_continuation_t){.callback = done, .env = returns > 0 ? results : NULL};
}

char *module_define(int number, const char *from, const char *name, const char *params, bool returns, bool wait) {
  if (linker == NULL) linker = wasmtime_linker_new(configured());
  wasm_valtype_t *types[WORDS];
  size_t n = strlen(params);
  if (n > WORDS || number >= FUNCTIONS) return strdup("there are too many functions, or arguments of one");
  for (size_t i = 0; i < n; i++) {
    wide[number] |= (uint32_t)(params[i] == 'I') << i;
    types[i] = wasm_valtype_new(params[i] == 'I' ? WASMTIME_I64 : WASMTIME_I32);
  }
  wasm_valtype_vec_t takes, gives;
  wasm_valtype_vec_new(&takes, n, types);
  if (returns) types[0] = wasm_valtype_new(WASMTIME_I32);
  wasm_valtype_vec_new(&gives, returns, types);
  wasm_functype_t *type = wasm_functype_new(&takes, &gives);
  void *env = (void *)(intptr_t)number;
  wasmtime_error_t *e =
      wait ? wasmtime_linker_define_async_func(linker, from, strlen(from), name, strlen(name), type, waits, env, NULL)
           : wasmtime_linker_define_func_unchecked(linker, from, strlen(from), name, strlen(name), type, called, env, NULL);
  wasm_functype_delete(type);
  return told(e);
}

void module_instantiate(void) {
  context = wasmtime_store_context(wasmtime_store_new(configured(), NULL, NULL));
  future = wasmtime_linker_instantiate_async(linker, context, module, &instance, &trap, &failure);
}

bool module_start(void) {
  static const char name[] = "_start";
  static wasmtime_extern_t start;
  if (!wasmtime_instance_export_get(context, &instance, name, sizeof name - 1, &start) ||
      start.kind != WASMTIME_EXTERN_FUNC)
    return false;
  future = wasmtime_func_call_async(context, &start.of.func, NULL, 0, NULL, 0, &trap, &failure);
  return true;
}

int module_resume(void) {
  answered = true;
  calls = -1;
  finished = false;
  enter();
  if (!finished) return calls;
  wasmtime_call_future_delete(future);
  future = NULL;
  return -1;
}

char *module_failed(void) {
  if (trap == NULL) return told(failure);
  uint8_t code;
  if (wasmtime_trap_code(trap, &code) && code == WASMTIME_TRAP_CODE_STACK_OVERFLOW)
    return strdup("call stack exhausted"); // else in a million functions
  wasm_byte_vec_t text;
  wasm_trap_message(trap, &text);
  return copied(&text);
}
