package viewgroup

import "fmt"

// silent is the library's logger. It discards all messages, since elections need no log. Fatal errors
// panic, and Member.attempt recovers.
type silent struct{}

// Debug does nothing.
func (silent) Debug(...any) {}

// Debugf does nothing.
func (silent) Debugf(string, ...any) {}

// Error does nothing.
func (silent) Error(...any) {}

// Errorf does nothing.
func (silent) Errorf(string, ...any) {}

// Info does nothing.
func (silent) Info(...any) {}

// Infof does nothing.
func (silent) Infof(string, ...any) {}

// Warning does nothing.
func (silent) Warning(...any) {}

// Warningf does nothing.
func (silent) Warningf(string, ...any) {}

// Fatal panics.
func (silent) Fatal(v ...any) { panic(fmt.Sprint(v...)) }

// Fatalf panics.
func (silent) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }

// Panic panics.
func (silent) Panic(v ...any) { panic(fmt.Sprint(v...)) }

// Panicf panics.
func (silent) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
