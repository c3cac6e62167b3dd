// What module.c needs of wasmtime's C interface: see doc.go.
#ifndef DECLARED_H
#define DECLARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef WASMTIME_API_H // else the types are those of the library: see TestDeclarations
typedef struct wasm_config_t wasm_config_t;
typedef struct wasm_engine_t wasm_engine_t;
typedef struct wasm_functype_t wasm_functype_t;
typedef struct wasm_memorytype_t wasm_memorytype_t;
typedef struct wasm_trap_t wasm_trap_t;
typedef struct wasm_valtype_t wasm_valtype_t;
typedef struct wasmtime_call_future wasmtime_call_future_t;
typedef struct wasmtime_caller wasmtime_caller_t;
typedef struct wasmtime_context wasmtime_context_t;
typedef struct wasmtime_error wasmtime_error_t;
typedef struct wasmtime_linker wasmtime_linker_t;
typedef struct wasmtime_module wasmtime_module_t;
typedef struct wasmtime_store wasmtime_store_t;

typedef struct wasm_byte_vec_t {
  size_t size;
  char *data;
} wasm_byte_vec_t;

typedef struct wasm_valtype_vec_t {
  size_t size;
  wasm_valtype_t **data;
} wasm_valtype_vec_t;

typedef struct wasmtime_func {
  uint64_t store_id;
  void *__private;
} wasmtime_func_t;

typedef struct wasmtime_instance {
  uint64_t store_id;
  size_t __private;
} wasmtime_instance_t;

typedef struct wasmtime_extern {
  uint8_t kind;
  union {
    wasmtime_func_t func;
    uint64_t __others[3];
  } of;
} wasmtime_extern_t;

typedef struct wasmtime_val {
  uint8_t kind;
  union {
    int32_t i32;
    int64_t i64;
    uint64_t __others[3];
  } of;
} wasmtime_val_t;

typedef union wasmtime_val_raw {
  int32_t i32;
  int64_t i64;
  uint64_t __others[2];
} wasmtime_val_raw_t;

enum { WASMTIME_I32, WASMTIME_I64 };
enum { WASMTIME_EXTERN_FUNC };
enum { WASMTIME_OPT_LEVEL_SPEED = 1 };
enum { WASMTIME_TRAP_CODE_STACK_OVERFLOW };

typedef uint8_t *(*wasmtime_memory_get_callback_t)(void *, size_t *, size_t *);
typedef wasmtime_error_t *(*wasmtime_memory_grow_callback_t)(void *, size_t);

typedef struct wasmtime_linear_memory {
  void *env;
  wasmtime_memory_get_callback_t get_memory;
  wasmtime_memory_grow_callback_t grow_memory;
  void (*finalizer)(void *);
} wasmtime_linear_memory_t;

typedef wasmtime_error_t *(*wasmtime_new_memory_callback_t)(void *, const wasm_memorytype_t *, size_t, size_t, size_t,
                                                            size_t, wasmtime_linear_memory_t *);

typedef struct wasmtime_memory_creator {
  void *env;
  wasmtime_new_memory_callback_t new_memory;
  void (*finalizer)(void *);
} wasmtime_memory_creator_t;

typedef uint8_t *(*wasmtime_stack_memory_get_callback_t)(void *, size_t *);

typedef struct {
  void *env;
  wasmtime_stack_memory_get_callback_t get_stack_memory;
  void (*finalizer)(void *);
} wasmtime_stack_memory_t;

typedef wasmtime_error_t *(*wasmtime_new_stack_memory_callback_t)(void *, size_t, bool, wasmtime_stack_memory_t *);

typedef struct {
  void *env;
  wasmtime_new_stack_memory_callback_t new_stack;
  void (*finalizer)(void *);
} wasmtime_stack_creator_t;

typedef wasm_trap_t *(*wasmtime_func_unchecked_callback_t)(void *, wasmtime_caller_t *, wasmtime_val_raw_t *, size_t);

typedef bool (*wasmtime_func_async_continuation_callback_t)(void *);

typedef struct wasmtime_async_continuation_t {
  wasmtime_func_async_continuation_callback_t callback;
  void *env;
  void (*finalizer)(void *);
} wasmtime_async_continuation_t;

typedef void (*wasmtime_func_async_callback_t)(void *, wasmtime_caller_t *, const wasmtime_val_t *, size_t,
                                               wasmtime_val_t *, size_t, wasm_trap_t **,
                                               wasmtime_async_continuation_t *);

#endif

void wasm_byte_vec_delete(wasm_byte_vec_t *);
wasm_config_t *wasm_config_new(void);
wasm_engine_t *wasm_engine_new_with_config(wasm_config_t *);
wasm_functype_t *wasm_functype_new(wasm_valtype_vec_t *, wasm_valtype_vec_t *);
void wasm_functype_delete(wasm_functype_t *);
void wasm_trap_message(const wasm_trap_t *, wasm_byte_vec_t *);
wasm_valtype_t *wasm_valtype_new(uint8_t);
void wasm_valtype_vec_new(wasm_valtype_vec_t *, size_t, wasm_valtype_t *const[]);

void wasmtime_config_async_stack_size_set(wasm_config_t *, uint64_t);
void wasmtime_config_async_support_set(wasm_config_t *, bool);
void wasmtime_config_cranelift_opt_level_set(wasm_config_t *, uint8_t);
void wasmtime_config_host_memory_creator_set(wasm_config_t *, wasmtime_memory_creator_t *);
void wasmtime_config_host_stack_creator_set(wasm_config_t *, wasmtime_stack_creator_t *);
void wasmtime_config_max_wasm_stack_set(wasm_config_t *, size_t);
void wasmtime_config_memory_init_cow_set(wasm_config_t *, bool);
void wasmtime_config_parallel_compilation_set(wasm_config_t *, bool);
void wasmtime_config_wasm_exceptions_set(wasm_config_t *, bool);
void wasmtime_config_wasm_function_references_set(wasm_config_t *, bool);
void wasmtime_config_wasm_gc_set(wasm_config_t *, bool);
void wasmtime_config_wasm_memory64_set(wasm_config_t *, bool);
void wasmtime_config_wasm_multi_memory_set(wasm_config_t *, bool);
void wasmtime_config_wasm_relaxed_simd_set(wasm_config_t *, bool);
void wasmtime_config_wasm_tail_call_set(wasm_config_t *, bool);
void wasmtime_config_wasm_threads_set(wasm_config_t *, bool);

bool wasmtime_call_future_poll(wasmtime_call_future_t *);
void wasmtime_call_future_delete(wasmtime_call_future_t *);
void wasmtime_error_delete(wasmtime_error_t *);
void wasmtime_error_message(const wasmtime_error_t *, wasm_byte_vec_t *);
wasmtime_error_t *wasmtime_error_new(const char *);
wasmtime_call_future_t *wasmtime_func_call_async(wasmtime_context_t *, const wasmtime_func_t *, const wasmtime_val_t *,
                                                 size_t, wasmtime_val_t *, size_t, wasm_trap_t **, wasmtime_error_t **);
bool wasmtime_instance_export_get(wasmtime_context_t *, const wasmtime_instance_t *, const char *, size_t,
                                  wasmtime_extern_t *);
wasmtime_error_t *wasmtime_linker_define_async_func(wasmtime_linker_t *, const char *, size_t, const char *, size_t,
                                                    const wasm_functype_t *, wasmtime_func_async_callback_t, void *,
                                                    void (*)(void *));
wasmtime_error_t *wasmtime_linker_define_func_unchecked(wasmtime_linker_t *, const char *, size_t, const char *, size_t,
                                                        const wasm_functype_t *, wasmtime_func_unchecked_callback_t,
                                                        void *, void (*)(void *));
wasmtime_call_future_t *wasmtime_linker_instantiate_async(const wasmtime_linker_t *, wasmtime_context_t *,
                                                          const wasmtime_module_t *, wasmtime_instance_t *,
                                                          wasm_trap_t **, wasmtime_error_t **);
wasmtime_linker_t *wasmtime_linker_new(wasm_engine_t *);
wasmtime_error_t *wasmtime_module_deserialize(wasm_engine_t *, const uint8_t *, size_t, wasmtime_module_t **);
wasmtime_error_t *wasmtime_module_new(wasm_engine_t *, const uint8_t *, size_t, wasmtime_module_t **);
wasmtime_error_t *wasmtime_module_serialize(wasmtime_module_t *, wasm_byte_vec_t *);
bool wasmtime_trap_code(const wasm_trap_t *, uint8_t *);
wasmtime_context_t *wasmtime_store_context(wasmtime_store_t *);
wasmtime_store_t *wasmtime_store_new(wasm_engine_t *, void *, void (*)(void *));

#endif
