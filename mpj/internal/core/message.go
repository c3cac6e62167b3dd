package core

import "github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"

// Send sends b to rank dest of c. It returns when b may be reused.
func Send(c *Comm, mode engineapi.Mode, b []byte, dest, tag int) error {
	if !c.plain(dest, tag) {
		if err := c.CheckDest(dest, tag); err != nil || dest == ProcNull {
			return err
		}
	}
	return c.wrap(c.engine.Send(c.Context(MessageSlot), c.WorldRank(dest), int32(tag), b, mode))
}

// Recv waits for a message from rank source (or AnySource) with tag (or AnyTag) and receives it into
// b. A longer message is lost; the error then has the class ErrTruncate.
func Recv(c *Comm, b []byte, source, tag int) (Status, error) {
	if !c.plain(source, tag) {
		if err := c.CheckSource(source, tag); err != nil {
			return Status{}, err
		}
		if source == ProcNull {
			return NullStatus, nil
		}
	}
	s, err := c.engine.Recv(c.Context(MessageSlot), c.WorldRank(source), int32(tag), b)
	return c.StatusOf(s), c.wrap(err)
}

// RecvWhole is Recv of a message of any length.
func RecvWhole(c *Comm, source, tag int) ([]byte, Status, error) {
	if err := c.CheckSource(source, tag); err != nil {
		return nil, Status{}, err
	}
	if source == ProcNull {
		return nil, NullStatus, nil
	}
	b, s, err := c.engine.RecvWhole(c.Context(MessageSlot), c.WorldRank(source), int32(tag))
	if err != nil {
		return nil, Status{}, c.wrap(err)
	}
	return b, c.StatusOf(s), nil
}

// Sendrecv sends send to dest and receives from source into recv at the same time.
func Sendrecv(c *Comm, send []byte, dest, sendTag int, recv []byte, source, recvTag int) (Status, error) {
	if err := c.CheckDest(dest, sendTag); err != nil {
		return Status{}, err
	}
	if err := c.CheckSource(source, recvTag); err != nil {
		return Status{}, err
	}
	switch {
	case dest == ProcNull:
		return Recv(c, recv, source, recvTag)
	case source == ProcNull:
		return NullStatus, Send(c, engineapi.Standard, send, dest, sendTag)
	}
	s, err := c.engine.Sendrecv(c.Context(MessageSlot), c.WorldRank(dest), int32(sendTag), send, c.WorldRank(source), int32(recvTag), recv)
	return c.StatusOf(s), c.wrap(err)
}
