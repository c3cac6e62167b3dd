package protect

import (
	"crypto/rand"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/replication"
)

// LogLimit bounds the message log that a process keeps for new replicas of its rank, in bytes.
const LogLimit = 1 << 30

// For returns the protocol for a process of a job with view v, or nil if there are no replicas.
// joining reports whether the rank is already running.
func For(self view.Process, v view.View, joining bool) protection.Protocol {
	if v.R == 1 {
		return nil
	}
	var secret replication.Secret
	rand.Read(secret[:]) // never fails
	if joining {
		return replication.NewJoining(self, v, secret)
	}
	return replication.New(self, v, secret)
}
