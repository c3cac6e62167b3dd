/* Nothing: what it takes to start and end a module. */
int main(void) { return 0; }
