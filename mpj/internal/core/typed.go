package core

import "github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"

// SendBuffer is Send of items of a datatype.
func SendBuffer(c *Comm, mode engineapi.Mode, b Buffer, dest, tag int) error {
	message, s := b.Message()
	err := Send(c, mode, message, dest, tag)
	if err == nil { // after an error the engine may still use the Scratch
		s.Put()
	}
	return err
}

// RecvBuffer is Recv into items of a datatype. A shorter message fills the first items.
func RecvBuffer(c *Comm, b Buffer, source, tag int) (Status, error) {
	room, packed := b.Room()
	s, err := Recv(c, room, source, tag)
	if packed != nil && err == nil {
		b.Unpack(room[:s.Size])
		packed.Put()
	}
	return s, err
}

// SendrecvBuffer is Sendrecv of items of datatypes. The data to send and the data to receive must not
// overlap.
func SendrecvBuffer(c *Comm, send Buffer, dest, sendTag int, recv Buffer, source, recvTag int) (Status, error) {
	out, sent := send.Message()
	in, packed := recv.Room()
	s, err := Sendrecv(c, out, dest, sendTag, in, source, recvTag)
	if packed != nil && err == nil {
		recv.Unpack(in[:s.Size])
	}
	if err == nil {
		sent.Put()
		packed.Put()
	}
	return s, err
}

// SendrecvReplaceBuffer is Sendrecv of items that the received items replace.
func SendrecvReplaceBuffer(c *Comm, b Buffer, dest, sendTag, source, recvTag int) (Status, error) {
	in, packed := b.Room()
	s, err := Sendrecv(c, b.Append(nil), dest, sendTag, in, source, recvTag)
	if packed != nil && err == nil {
		b.Unpack(in[:s.Size])
		packed.Put()
	}
	return s, err
}

// IsendBuffer is Isend of items of a datatype.
func IsendBuffer(c *Comm, call string, mode engineapi.Mode, b Buffer, dest, tag int) (*Request, error) {
	run, ok := b.Run()
	if !ok {
		run = b.Append(nil)
	}
	return Isend(c, call, mode, run, dest, tag)
}

// IrecvBuffer is Irecv into items of a datatype. The data is in place after Wait or Test has reported
// the request complete.
func IrecvBuffer(c *Comm, call string, b Buffer, source, tag int) (*Request, error) {
	target, unpack := b.Target()
	r, err := Irecv(c, call, target, source, tag)
	if err == nil {
		r.unpack = unpack
	}
	return r, err
}
