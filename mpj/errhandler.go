package mpj

// An Errhandler is called with every error of a communicator before the failed call returns; the
// call then returns the handler's result. Several goroutines may call a handler at once, and a
// handler may use the communicator.
type Errhandler func(c *Comm, err *Error) error

// ErrorsReturn is the default handler, which returns errors unchanged.
func ErrorsReturn(_ *Comm, err *Error) error { return err }

// ErrorsAreFatal aborts the whole job with status 1 and the error as the reason. This is the default
// in C, so the handler suits programs ported from C.
func ErrorsAreFatal(c *Comm, err *Error) error {
	c.world.Abort(1, err.Error())
	return err
}
