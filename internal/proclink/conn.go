//go:build !wasip1

package proclink

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// maxMessage bounds one encoded message, in bytes. The largest is a Start with the view and the places of
// view.MaxProcesses processes.
const maxMessage = 4 << 20

// maxFromProcess bounds one encoded message from a process, in bytes. The largest is a Finalized with
// MaxSums sums.
const maxFromProcess = 128 << 10

// A Conn is one end of the control socket. Send may be called concurrently, Receive only by one goroutine
// at a time.
type Conn struct {
	unix *net.UnixConn

	most uint32 // maximum size of an accepted message, in bytes
	last int    // size of the last received message, in bytes

	sending sync.Mutex

	descriptors []*os.File // received, not yet claimed by their message
}

// Pair returns the two ends of a new control socket: the peer's end, and the file that its process
// inherits.
func Pair() (*Conn, *os.File, error) {
	ours, theirs, err := SocketPair()
	if err != nil {
		return nil, nil, err
	}
	defer ours.Close()
	conn, err := FromFile(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	conn.most = maxFromProcess
	return conn, theirs, nil
}

// SocketPair returns two connected stream sockets that are closed on exec.
func SocketPair() (a, b *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "socketpair"), os.NewFile(uintptr(fds[1]), "socketpair"), nil
}

// FromFile returns a Conn for an inherited socket. It duplicates the descriptor, so the caller still has
// to close f.
func FromFile(f *os.File) (*Conn, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	unix, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("control socket: descriptor is a %s socket, want a Unix socket", c.LocalAddr().Network())
	}
	return &Conn{unix: unix, most: maxMessage}, nil
}

// Send writes m. The message carries descriptor if it is a Channel, an Accept, or a Setup of Kind Shm; for all
// other messages descriptor must be nil. The caller still owns descriptor and closes it.
func (c *Conn) Send(m Message, descriptor *os.File) error {
	if m.carriesDescriptor() != (descriptor != nil) {
		return fmt.Errorf("%s message: descriptor %v", m.Type, descriptor)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s message: %w", m.Type, err)
	}
	if len(body) > maxMessage {
		return fmt.Errorf("%s message has %d bytes, at most %d are allowed", m.Type, len(body), maxMessage)
	}
	var rights []byte
	if descriptor != nil {
		rights = syscall.UnixRights(int(descriptor.Fd()))
	}
	return c.write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), rights)
}

// write writes all of b, with rights attached to its first byte. Only peers attach rights: programs send no
// descriptors, and the sandbox would not let them.
func (c *Conn) write(b, rights []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if len(rights) == 0 {
		_, err := c.unix.Write(b)
		return err
	}
	for len(b) > 0 {
		n, _, err := c.unix.WriteMsgUnix(b, rights, nil)
		if err != nil {
			return err
		}
		b, rights = b[n:], nil
	}
	return nil
}

// Receive returns the next message, and the descriptor if the message carries one. The caller then owns the
// descriptor. The error is io.EOF if the other side closed the socket between two messages.
func (c *Conn) Receive() (Message, *os.File, error) {
	var head [4]byte
	if err := c.readFull(head[:]); err != nil {
		return Message{}, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > c.most {
		return Message{}, nil, fmt.Errorf("message of %d bytes, at most %d are allowed", size, c.most)
	}
	c.last = int(size)
	body := make([]byte, size)
	if err := c.readFull(body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Message{}, nil, err
	}
	return c.decode(body)
}

// Last returns the size of the last received message in bytes.
func (c *Conn) Last() int { return c.last }

func (c *Conn) decode(body []byte) (Message, *os.File, error) {
	var m Message
	if err := json.Unmarshal(body, &m); err != nil {
		return Message{}, nil, fmt.Errorf("decode message: %w", err)
	}
	if m.View != nil {
		if err := m.View.Valid(); err != nil {
			return Message{}, nil, fmt.Errorf("%s message: %w", m.Type, err)
		}
	}
	if !m.carriesDescriptor() {
		return m, nil, nil
	}
	if len(c.descriptors) == 0 || m.Process == nil {
		return Message{}, nil, fmt.Errorf("%s message without its file descriptor or process", m.Type)
	}
	f := c.descriptors[0]
	c.descriptors = c.descriptors[1:]
	return m, f, nil
}

// readFull fills b and collects the descriptors that arrive meanwhile. The error is io.EOF only if
// nothing was read.
func (c *Conn) readFull(b []byte) error {
	oob := make([]byte, syscall.CmsgSpace(4*maxDescriptors))
	for read := 0; read < len(b); {
		n, oobn, _, _, err := c.unix.ReadMsgUnix(b[read:], oob)
		if oobn > 0 {
			if err := c.collect(oob[:oobn]); err != nil {
				return err
			}
		}
		read += n
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case n == 0 && read == 0:
			return io.EOF
		case n == 0:
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}

// maxDescriptors bounds the descriptors that wait for their message, so that a hostile process cannot
// fill its peer's descriptor table.
const maxDescriptors = 16

func (c *Conn) collect(oob []byte) error {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("parse control message: %w", err)
	}
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return fmt.Errorf("parse descriptors: %w", err)
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			c.descriptors = append(c.descriptors, os.NewFile(uintptr(fd), "channel"))
		}
	}
	if len(c.descriptors) > maxDescriptors {
		return fmt.Errorf("more than %d file descriptors without their messages", maxDescriptors)
	}
	return nil
}

// Close closes the control socket; a blocked Receive returns an error.
func (c *Conn) Close() error { return c.unix.Close() }

// CloseUnclaimed closes descriptors whose message has not arrived. The reader calls it after Receive has
// failed.
func (c *Conn) CloseUnclaimed() {
	for _, f := range c.descriptors {
		f.Close()
	}
	c.descriptors = nil
}
