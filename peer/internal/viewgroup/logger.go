package viewgroup

import "fmt"

// silent is the library's logger: nobody reads how an election went. What it cannot
// go on after is a panic, which Member.attempt catches.
type silent struct{}

// Debug says nothing.
func (silent) Debug(...any) {}

// Debugf says nothing.
func (silent) Debugf(string, ...any) {}

// Error says nothing.
func (silent) Error(...any) {}

// Errorf says nothing.
func (silent) Errorf(string, ...any) {}

// Info says nothing.
func (silent) Info(...any) {}

// Infof says nothing.
func (silent) Infof(string, ...any) {}

// Warning says nothing.
func (silent) Warning(...any) {}

// Warningf says nothing.
func (silent) Warningf(string, ...any) {}

// Fatal panics.
func (silent) Fatal(v ...any) { panic(fmt.Sprint(v...)) }

// Fatalf panics.
func (silent) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }

// Panic panics.
func (silent) Panic(v ...any) { panic(fmt.Sprint(v...)) }

// Panicf panics.
func (silent) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
