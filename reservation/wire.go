package reservation

import (
	"encoding/hex"
	"errors"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/reservation/internal/pb"
)

// protocolID is the libp2p protocol ID of the reservation protocol.
const protocolID = "/p2pmpi/reservation/1.0.0"

// maxMessage bounds a request and an answer, in bytes.
const maxMessage = 512

// wireReasons maps the reasons that a peer may give to their numbers on the wire.
var wireReasons = map[Reason]pb.Reason{
	Busy:       pb.Reason_BUSY,
	MaxJobs:    pb.Reason_MAX_JOBS,
	Denied:     pb.Reason_DENIED,
	Draining:   pb.Reason_DRAINING,
	Version:    pb.Reason_VERSION,
	UnknownKey: pb.Reason_UNKNOWN_KEY,
	Malformed:  pb.Reason_MALFORMED,
	WasmOnly:   pb.Reason_WASM_ONLY,
	Unconfined: pb.Reason_UNCONFINED,
	Paused:     pb.Reason_PAUSED,
	NoDisk:     pb.Reason_NO_DISK,
}

// refusal returns the answer that carries err, which is nil or a Reason.
func refusal(err error) *pb.Answer {
	if err == nil {
		return &pb.Answer{}
	}
	a := &pb.Answer{Reason: wireReasons[reasonOf(err)]}
	if q, ok := errors.AsType[*queued](err); ok {
		a.Place, a.Of = uint32(q.Place.Place), uint32(q.Place.Of)
	}
	return a
}

// answerError returns the error that was passed to refusal. It returns Malformed for an unknown number or
// an invalid place.
func answerError(a *pb.Answer) error {
	if a.GetReason() == pb.Reason_NONE {
		return nil
	}
	for r, number := range wireReasons {
		switch {
		case number != a.GetReason():
		case a.GetOf() == 0:
			return r
		case (r != Busy && r != MaxJobs) || a.GetPlace() < 1 || a.GetPlace() > a.GetOf() || a.GetOf() > maxQueue:
			return Malformed
		default:
			return &queued{Reason: r, Place: Place{int(a.GetPlace()), int(a.GetOf())}}
		}
	}
	return Malformed
}

func grantAnswer(g Grant, now time.Time) *pb.Answer {
	machine, _ := hex.DecodeString(g.Machine) // always valid, since machineName made it
	return &pb.Answer{
		Key: g.Key[:], Slots: uint32(g.Slots), LeaseMillis: uint32(max(0, g.Expires.Sub(now).Milliseconds())), Machine: machine,
	}
}

// grantOf decodes the answer to a request that was sent at asked. The lease began no earlier than that,
// so it does not end before the computed Expires.
func grantOf(a *pb.Answer, asked time.Time) (Grant, error) {
	if err := answerError(a); err != nil {
		return Grant{}, err
	}
	key, err := keyFromBytes(a.GetKey())
	machine := a.GetMachine()
	if err != nil || a.GetSlots() < 1 || a.GetSlots() > maxSlots || len(machine) != 0 && len(machine) != machineSize {
		return Grant{}, Malformed
	}
	lease := time.Duration(a.GetLeaseMillis()) * time.Millisecond
	return Grant{Key: key, Slots: int(a.GetSlots()), Expires: asked.Add(lease), Machine: hex.EncodeToString(machine)}, nil
}

func holdRequest(q Request) *pb.Request {
	hold := &pb.Hold{Job: q.Job, Slots: wireSlots(q.Slots), Waits: q.Waits, Kinds: q.Kinds}
	if !q.Since.IsZero() {
		hold.Since = q.Since.UnixMilli()
	}
	return &pb.Request{Protocol: version.Protocol, Call: &pb.Request_Hold{Hold: hold}}
}

// requestOf decodes a Hold of submitter, which asks from origin. It accepts any time for Since;
// Ledger.acceptedSince limits it.
func requestOf(hold *pb.Hold, submitter p2ppeer.ID, origin string) Request {
	q := Request{
		Job: hold.GetJob(), Submitter: submitter, Origin: origin,
		Slots: int(min(hold.GetSlots(), maxSlots)), Waits: hold.GetWaits(), Kinds: hold.GetKinds(),
	}
	if since := hold.GetSince(); since != 0 {
		q.Since = time.UnixMilli(since)
	}
	return q
}

func confirmRequest(key Key, slots int) *pb.Request {
	return &pb.Request{Protocol: version.Protocol, Call: &pb.Request_Confirm{Confirm: &pb.Confirm{Key: key[:], Slots: wireSlots(slots)}}}
}

func releaseRequest(job string, waits bool) *pb.Request {
	return &pb.Request{Protocol: version.Protocol, Call: &pb.Request_Release{Release: &pb.Release{Job: job, Waits: waits}}}
}

// wireSlots encodes a number that is out of range as 0, which every peer refuses.
func wireSlots(slots int) uint32 {
	if slots < 0 || slots > maxSlots {
		return 0
	}
	return uint32(slots)
}
