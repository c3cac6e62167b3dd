package mpj

import "github.com/p2pmpi/p2pmpi/mpj/internal/engine"

// Send sends buf to rank dest of c. It returns when buf may be used again, not
// when the message has been received; it waits only while very much of what
// was sent before has not arrived yet.
func Send[T Element](c *Comm, buf []T, dest, tag int) error {
	if err := c.checkDest("Send", dest, tag); err != nil {
		return err
	}
	if dest == ProcNull {
		return nil
	}
	return c.wrap("Send", c.engine.Send(c.context(messageSlot), c.worldRank(dest), int32(tag), bytesOf(buf), engine.Standard))
}

// Recv receives a message of rank source (or AnySource) with tag (or AnyTag)
// into buf and waits for it. The message may be shorter than buf. One that is
// longer is lost and gives ErrTruncate.
func Recv[T Element](c *Comm, buf []T, source, tag int) (Status, error) {
	if err := c.checkSource("Recv", source, tag); err != nil {
		return Status{}, err
	}
	if source == ProcNull {
		return nothing, nil
	}
	s, err := c.engine.Recv(c.context(messageSlot), c.worldRank(source), int32(tag), bytesOf(buf))
	return c.statusOf(s), c.wrap("Recv", err)
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
	r := &Request{comm: c, op: "Sendrecv", receive: true}
	if source != ProcNull {
		var err error
		if r.request, err = c.engine.Irecv(c.context(messageSlot), c.worldRank(source), int32(recvTag), bytesOf(recv)); err != nil {
			return Status{}, c.wrap("Sendrecv", err)
		}
	}
	if dest != ProcNull {
		if err := c.engine.Send(c.context(messageSlot), c.worldRank(dest), int32(sendTag), bytesOf(send), engine.Standard); err != nil {
			return Status{}, c.wrap("Sendrecv", err)
		}
	}
	return r.result()
}

// Isend is Send without waiting. The message is already copied when it
// returns, so that buf may be used at once; Wait keeps the program from
// running ahead of the network.
func Isend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	if err := c.checkDest("Isend", dest, tag); err != nil {
		return nil, err
	}
	if dest == ProcNull {
		return &Request{comm: c, op: "Isend"}, nil
	}
	r, err := c.engine.Isend(c.context(messageSlot), c.worldRank(dest), int32(tag), bytesOf(buf), engine.Standard)
	if err != nil {
		return nil, c.wrap("Isend", err)
	}
	return &Request{comm: c, request: r, op: "Isend"}, nil
}

// Irecv is Recv without waiting. buf belongs to the request until it is
// complete.
func Irecv[T Element](c *Comm, buf []T, source, tag int) (*Request, error) {
	if err := c.checkSource("Irecv", source, tag); err != nil {
		return nil, err
	}
	if source == ProcNull {
		return &Request{comm: c, op: "Irecv", receive: true}, nil
	}
	r, err := c.engine.Irecv(c.context(messageSlot), c.worldRank(source), int32(tag), bytesOf(buf))
	if err != nil {
		return nil, c.wrap("Irecv", err)
	}
	return &Request{comm: c, request: r, op: "Irecv", receive: true}, nil
}

// Probe waits for a message that a Recv with the same source and tag would
// receive, and describes it without receiving it.
func Probe(c *Comm, source, tag int) (Status, error) {
	if err := c.checkSource("Probe", source, tag); err != nil {
		return Status{}, err
	}
	if source == ProcNull {
		return nothing, nil
	}
	s, err := c.engine.Probe(c.context(messageSlot), c.worldRank(source), int32(tag))
	return c.statusOf(s), c.wrap("Probe", err)
}

// Iprobe is Probe without waiting: ok tells whether there is such a message.
func Iprobe(c *Comm, source, tag int) (s Status, ok bool, err error) {
	if err := c.checkSource("Iprobe", source, tag); err != nil {
		return Status{}, false, err
	}
	if source == ProcNull {
		return nothing, true, nil
	}
	found, ok, err := c.engine.Iprobe(c.context(messageSlot), c.worldRank(source), int32(tag))
	return c.statusOf(found), ok, c.wrap("Iprobe", err)
}
