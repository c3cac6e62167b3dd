// A module in its engine, of which a process has one. What returns a text returns NULL, or
// what has gone wrong, which is the caller's to free.
#ifndef MODULE_H
#define MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORDS = 16, FUNCTIONS = 256 }; // more than there are, and than any has arguments

// What the module's memory is now. It does not move.
extern struct module_memory {
  uint8_t *at;
  size_t size, most, reserved;
} module_memory;

// The arguments of the call that the module makes, and then its result.
extern uint64_t module_stack[WORDS];

// module_compile compiles a module, and returns what it was compiled to: the caller's to free.
char *module_compile(const uint8_t *binary, size_t size, uint8_t **code, size_t *code_size);
// module_load takes what module_compile has returned.
char *module_load(const uint8_t *code, size_t size);
// module_define offers a function of the host, which module_resume calls by its number. Only after a call of
// one that waits may module_resume be called on another thread.
char *module_define(int number, const char *module, const char *name, const char *params, bool returns, bool wait);
// module_instantiate begins to make the module ready, and module_start to run it; false if it
// has nothing to run. Both go on by module_resume.
void module_instantiate(void);
bool module_start(void);
// module_resume goes on until the module calls a function, whose number is returned; or to the
// end: then it returns -1, and module_failed says why, if it did not end well.
int module_resume(void);
char *module_failed(void);

#endif
