package mpj

// An Errhandler sees every error of a communicator before the call that failed
// returns it; what it returns is returned in its place. It may be called by
// several goroutines at once, and may itself use the communicator.
type Errhandler func(c *Comm, err *Error) error

// ErrorsReturn is the handler that every world starts with: errors are values.
func ErrorsReturn(_ *Comm, err *Error) error { return err }

// ErrorsAreFatal ends the whole job with the error as its reason and status 1.
// It suits programs moved from C, where that is the default.
func ErrorsAreFatal(c *Comm, err *Error) error {
	c.world.Abort(1, err.Error())
	return err
}

// SetErrhandler makes h see the errors of c from now on; nil is ErrorsReturn.
// Communicators made of c later inherit it.
func (c *Comm) SetErrhandler(h Errhandler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errhandler = h
}

// Errhandler returns the handler of c, or nil when that is ErrorsReturn.
func (c *Comm) Errhandler() Errhandler {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errhandler
}
