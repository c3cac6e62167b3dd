package core

// Check returns an error if c is nil, was freed, or is not complete yet. The functions that create a
// communicator return nil at ranks outside it.
func (c *Comm) Check() error {
	if c == nil {
		return Failf(ErrComm, "this process is not in the communicator, which is nil")
	}
	if c.freed.Load() {
		if c.incomplete.Load() {
			return c.Failf(ErrComm, "Idup has not completed the communicator: wait for its request first")
		}
		return c.Failf(ErrComm, "communicator %q was freed", c.Name())
	}
	return nil
}

// plain reports whether c, rank and tag are valid and neither rank nor tag has a special meaning,
// as for nearly every message. It stays small enough to be inlined, because calls are costly within
// a module.
func (c *Comm) plain(rank, tag int) bool {
	return c != nil && uint(rank) < uint(c.named) && uint(tag) <= MaxTag && !c.freed.Load()
}

// CheckDest returns an error if c or the arguments of a send are invalid. dest may be ProcNull.
func (c *Comm) CheckDest(dest, tag int) error {
	if err := c.Check(); err != nil {
		return err
	}
	if dest != ProcNull && (dest < 0 || dest >= c.named) {
		return c.Failf(ErrRank, "dest %d, ranks are 0..%d", dest, c.named-1)
	}
	if tag < 0 || tag > MaxTag {
		return c.Failf(ErrTag, "tag %d, tags are 0..%d", tag, MaxTag)
	}
	return nil
}

// CheckSource returns an error if c or the arguments of a receive are invalid. source may be
// ProcNull.
func (c *Comm) CheckSource(source, tag int) error {
	if err := c.Check(); err != nil {
		return err
	}
	if source != AnySource && source != ProcNull && (source < 0 || source >= c.named) {
		return c.Failf(ErrRank, "source %d, ranks are 0..%d or AnySource", source, c.named-1)
	}
	if tag != AnyTag && (tag < 0 || tag > MaxTag) {
		return c.Failf(ErrTag, "tag %d, tags are 0..%d or AnyTag", tag, MaxTag)
	}
	return nil
}

// CheckIntra is like Check, for operations that intercommunicators do not support.
func (c *Comm) CheckIntra() error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.local != nil {
		return c.Failf(ErrComm, "communicator %q is an intercommunicator: use Merge to make a communicator that has collectives", c.Name())
	}
	if err := c.process.unforced; err != nil {
		return c.Failf(ErrArg, "%v", err)
	}
	return nil
}

// checkRoot returns an error if root is not a rank of c.
func checkRoot(c *Comm, root int) error {
	if root < 0 || root >= c.size {
		return c.Failf(ErrRoot, "root %d, ranks are 0..%d", root, c.size-1)
	}
	return nil
}

// CheckInter returns an error if c is not an intercommunicator.
func (c *Comm) CheckInter() error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.local == nil {
		return c.Failf(ErrComm, "communicator %q is not an intercommunicator", c.Name())
	}
	return nil
}
