package mpj

import "context"

// RunLocal runs program as the n ranks of a world within this process, each in
// a goroutine of its own, and returns when all have returned: with the errors
// joined, or with an error that names the status and reason of an Abort. It is for
// tests, examples and debugging. It finalizes the worlds of programs that did
// not do so themselves.
func RunLocal(ctx context.Context, n int, program func(*World) error) error { return nil }
