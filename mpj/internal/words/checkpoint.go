package words

import "io"

// A Checkpoint is what a program's checkpoint consists of.
type Checkpoint struct {
	Save    func(io.Writer) error // writes the state of the program
	Restore func(io.Reader) error // reads it
	// Own is called after Save. It returns what the caller has to know of itself beside
	// the program's state, or not ok: this checkpoint cannot be. TakeOwn is called before Restore.
	Own     func() (own []byte, ok bool)
	TakeOwn func([]byte) error
}
