package submit

import (
	"crypto/sha256"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// accountOf decodes a peer's account of one of its processes in a job with view v.
func accountOf(m *jobpb.Account, v view.View) (a job.Account, err error) {
	a = job.Account{Summed: m.Summed, Digested: m.Digested, Printed: job.Printed{Bytes: m.Printed}}
	if a.Sums, err = m.Sent(v); err != nil {
		return a, err
	}
	if copy(a.Printed.Digest[:], m.Digest) != len(m.Digest) || m.Digested && len(m.Digest) != sha256.Size {
		return a, fmt.Errorf("digest of %d bytes", len(m.Digest))
	}
	return a, nil
}
