package mpj

// Send sends buf to rank dest of c. It returns when buf may be used again, not
// when the message has been received; it waits only while very much of what
// was sent before has not arrived yet.
func Send[T Element](c *Comm, buf []T, dest, tag int) error {
	if err := c.checkDest("Send", dest, tag); err != nil {
		return err
	}
	return wrap("Send", c.engine.Send(c.messages, dest, int32(tag), bytesOf(buf)))
}

// Recv receives a message of rank source (or AnySource) with tag (or AnyTag)
// into buf and waits for it. The message may be shorter than buf. One that is
// longer is lost and gives ErrTruncate.
func Recv[T Element](c *Comm, buf []T, source, tag int) (Status, error) {
	if err := c.checkSource("Recv", source, tag); err != nil {
		return Status{}, err
	}
	s, err := c.engine.Recv(c.messages, source, int32(tag), bytesOf(buf))
	return statusOf(s), wrap("Recv", err)
}

// Sendrecv sends send to dest and receives from source at the same time, so
// that ranks may exchange messages in a ring. The two buffers do not overlap.
func Sendrecv[S, R Element](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) (Status, error) {
	if err := c.checkDest("Sendrecv", dest, sendTag); err != nil {
		return Status{}, err
	}
	if err := c.checkSource("Sendrecv", source, recvTag); err != nil {
		return Status{}, err
	}
	r, err := c.engine.Irecv(c.messages, source, int32(recvTag), bytesOf(recv))
	if err != nil {
		return Status{}, wrap("Sendrecv", err)
	}
	if err := c.engine.Send(c.messages, dest, int32(sendTag), bytesOf(send)); err != nil {
		return Status{}, wrap("Sendrecv", err)
	}
	s, err := c.engine.Wait(r)
	return statusOf(s), wrap("Sendrecv", err)
}

// Isend is Send without waiting. The message is already copied when it
// returns, so that buf may be used at once; Wait keeps the program from
// running ahead of the network.
func Isend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	if err := c.checkDest("Isend", dest, tag); err != nil {
		return nil, err
	}
	r, err := c.engine.Isend(c.messages, dest, int32(tag), bytesOf(buf))
	if err != nil {
		return nil, wrap("Isend", err)
	}
	return &Request{engine: c.engine, request: r, op: "Isend"}, nil
}

// Irecv is Recv without waiting. buf belongs to the request until it is
// complete.
func Irecv[T Element](c *Comm, buf []T, source, tag int) (*Request, error) {
	if err := c.checkSource("Irecv", source, tag); err != nil {
		return nil, err
	}
	r, err := c.engine.Irecv(c.messages, source, int32(tag), bytesOf(buf))
	if err != nil {
		return nil, wrap("Irecv", err)
	}
	return &Request{engine: c.engine, request: r, op: "Irecv"}, nil
}

// Probe waits for a message that a Recv with the same source and tag would
// receive, and describes it without receiving it.
func Probe(c *Comm, source, tag int) (Status, error) {
	if err := c.checkSource("Probe", source, tag); err != nil {
		return Status{}, err
	}
	s, err := c.engine.Probe(c.messages, source, int32(tag))
	return statusOf(s), wrap("Probe", err)
}

// Iprobe is Probe without waiting: ok tells whether there is such a message.
func Iprobe(c *Comm, source, tag int) (s Status, ok bool, err error) {
	if err := c.checkSource("Iprobe", source, tag); err != nil {
		return Status{}, false, err
	}
	found, ok, err := c.engine.Iprobe(c.messages, source, int32(tag))
	return statusOf(found), ok, wrap("Iprobe", err)
}
