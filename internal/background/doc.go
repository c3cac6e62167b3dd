// Package background ends the work of a service in an orderly way: its goroutines, stream handlers and calls.
package background
