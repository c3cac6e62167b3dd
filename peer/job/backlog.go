package job

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// A backlog is what has been said of one process too early to be taken, in its order.
type backlog struct {
	said []heard
	size int // bytes, by weight
}

const (
	// maxEarly bounds a backlog. An honest peer has less to say of a process: two full
	// streams of empty lines, each in a message of its own, come to 15 MB.
	maxEarly = 20 << 20

	// messageOverhead is counted for each message beside its bytes, so that empty ones
	// have a limit too: about what one takes when it is decoded.
	messageOverhead = 256
)

// weight returns how many bytes a message takes while it is kept, about.
func weight(m *jobpb.FromPeer) int {
	return messageOverhead + proto.Size(m)
}

// add returns b with one more message, and an error if that is too much.
func (b backlog) add(h heard) (backlog, error) {
	b.size += weight(h.msg)
	if b.size > maxEarly {
		return b, fmt.Errorf("%d bytes that cannot be taken yet", b.size)
	}
	b.said = append(b.said, h)
	return b, nil
}
