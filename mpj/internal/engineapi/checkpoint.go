package engineapi

import "io"

// A Checkpoint holds the functions that save and restore a program's state.
type Checkpoint struct {
	Save    func(io.Writer) error // writes the state of the program
	Restore func(io.Reader) error // reads the state of the program
	// Own is called after Save. It returns the caller's state in addition to the program's, or
	// false if no checkpoint is possible. TakeOwn is called before Restore.
	Own     func() (own []byte, ok bool)
	TakeOwn func([]byte) error
}
