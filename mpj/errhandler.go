package mpj

// An Errhandler receives every error of a communicator before the failed call returns; the call
// returns the handler's result instead. Several goroutines may call it at once, and it may itself
// use the communicator.
type Errhandler func(c *Comm, err *Error) error

// ErrorsReturn is the default handler, which returns errors unchanged.
func ErrorsReturn(_ *Comm, err *Error) error { return err }

// ErrorsAreFatal aborts the whole job with status 1 and the error as the reason. It suits programs
// ported from C, where this is the default.
func ErrorsAreFatal(c *Comm, err *Error) error {
	c.world.Abort(1, err.Error())
	return err
}

// SetErrhandler sets the error handler of c; nil means ErrorsReturn. Communicators created from c
// later inherit it.
func (c *Comm) SetErrhandler(h Errhandler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errhandler = h
}

// Errhandler returns the handler of c, or nil if none was set.
func (c *Comm) Errhandler() Errhandler {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.errhandler
}
