package launch

import (
	"errors"
	"fmt"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// A running job may get an additional process on this peer, which replaces a replica lost elsewhere. Like
// any other process, it has its own slot, scratch folder and supervisor.
//
//	submitter                            this peer
//	    |-- Add(process, key) -------------->|  key redeemed, files laid out
//	    |<-- Added --------------------------|  it runs
//	    |<-- Initialized(key) ---------------|  it waits in mpj.Init
//	    |-- Joined, View ------------------->|  it is in the view, and begins
//	    |-- Drop -------------------------->|  or is dropped before that: nothing of it is left
//
// Another peer may run the process instead, if the submitter has dropped it and this peer has not been
// told.

// readKey converts bytes to a reservation key. It returns an error if they do not have the size of a key.
func readKey(b []byte) (key reservation.Key, err error) {
	if len(b) != len(key) {
		return key, fmt.Errorf("reservation key of %d bytes", len(b))
	}
	return reservation.Key(b), nil
}

var errDropped = errors.New("the submitter has dropped it")
