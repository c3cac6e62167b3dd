package engineapi

import "io"

// A Checkpoint holds the functions that save and restore a program's state.
type Checkpoint struct {
	Save    func(io.Writer) error // writes the state of the program
	Restore func(io.Reader) error // reads the state of the program
	// Own is called after Save. It returns the state of the caller, in addition to the state of the
	// program, or false if no checkpoint is possible. TakeOwn is called before Restore with the
	// state that Own returned.
	Own     func() (own []byte, ok bool)
	TakeOwn func([]byte) error
}
