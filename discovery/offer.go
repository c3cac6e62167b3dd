package discovery

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/serf/coordinate"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/reliability"
	"github.com/p2pmpi/p2pmpi/internal/sealed"
	"github.com/p2pmpi/p2pmpi/internal/version"
)

// Bounds on the fields of an offer. They are far above honest values. They keep a false offer from
// distorting sums or flooding the screen.
const (
	maxSlots       = 1 << 16 // slots of one peer, and bound on its jobs
	maxMemoryBytes = 1 << 50
	maxKinds       = 8
	maxSpeed       = 1 << 24 // Mflop/s
	maxLoad        = 1 << 16
	maxToken       = 64      // bytes of a name: network, OS, release, ...
	maxEnvelope    = 4 << 10 // bytes of a sealed offer, an RSA key included
)

// Every search requests a new offer, so its lifetime only bounds replays. clockSkew is the tolerated
// difference between two peers' clocks, since volunteers' clocks are often minutes off.
const (
	offerLifetime = time.Minute
	maxLifetime   = time.Hour
	clockSkew     = 5 * time.Minute
)

// An Offer describes the resources that a peer has for jobs now. The peer signs and announces it.
type Offer struct {
	Peer        p2ppeer.ID // the offering peer, which must also be the signer
	Network     string
	SlotsTotal  int      // slots that the owner donates
	SlotsFree   int      // donated slots that no job holds
	MaxJobs     int      // number of jobs at once; 0 means no limit
	Jobs        int      // jobs that hold slots now
	MemoryBytes uint64   // memory of the machine, or 0 if unknown
	OS, Arch    string   // GOOS and GOARCH names: linux, amd64
	Kinds       []string // kinds of programs accepted from all peers: native, wasm
	Speed       int      // speed of one processor in Mflop/s, or 0 if unknown
	Load        float64  // running processes per processor over a minute, or 0 if unknown

	// Reachability states whether other peers can connect directly, as far as the peer knows. A private
	// peer is reached through relays and hole punching.
	Reachability network.Reachability

	// Position is the peer's own claim of its network coordinate, in seconds; nil if absent.
	Position *coordinate.Coordinate

	Site     string              // location, as the owner declares it; may be empty
	Owner    string              // name of the owner, as the peer claims; may be empty
	Machine  string              // equal for all peers of one machine in offers to the same peer; may be empty
	History  reliability.History // history of the peer, as the peer claims, to the second
	Protocol int                 // version.Protocol of the peer
	Release  string
	Issued   time.Time // time by the peer's clock, to the millisecond
	Expires  time.Time
}

// Kind implements sealed.Record.
func (o *Offer) Kind() string { return "offer" }

// MarshalRecord encodes o.
func (o *Offer) MarshalRecord() ([]byte, error) {
	return proto.Marshal(&pb.Offer{
		Protocol:     uint32(o.Protocol),
		Peer:         []byte(o.Peer),
		Network:      o.Network,
		SlotsTotal:   uint32(o.SlotsTotal),
		SlotsFree:    uint32(o.SlotsFree),
		MaxJobs:      uint32(o.MaxJobs),
		Jobs:         uint32(o.Jobs),
		MemoryBytes:  o.MemoryBytes,
		Os:           o.OS,
		Arch:         o.Arch,
		Kinds:        o.Kinds,
		Speed:        uint32(o.Speed),
		Load:         uint32(math.Round(100 * o.Load)),
		Reachability: uint32(o.Reachability),
		Site:         o.Site,
		Owner:        o.Owner,
		Machine:      o.Machine,
		Position:     toPB(o.Position),
		UpSeconds:    uint64(o.History.Up / time.Second),
		Ends:         uint32(o.History.Ends),
		Release:      o.Release,
		Issued:       o.Issued.UnixMilli(),
		Expires:      o.Expires.UnixMilli(),
	})
}

// UnmarshalRecord decodes data into o without validating the fields. openOffer validates them, so that it can
// report an offer of another protocol version as such.
func (o *Offer) UnmarshalRecord(data []byte) error {
	var m pb.Offer
	if err := proto.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("decode offer: %w", err)
	}
	id, err := p2ppeer.IDFromBytes(m.GetPeer())
	if err != nil {
		return fmt.Errorf("decode offer: peer ID: %w", err)
	}
	*o = Offer{
		Peer:         id,
		Network:      m.GetNetwork(),
		SlotsTotal:   int(m.GetSlotsTotal()),
		SlotsFree:    int(m.GetSlotsFree()),
		MaxJobs:      int(m.GetMaxJobs()),
		Jobs:         int(m.GetJobs()),
		MemoryBytes:  m.GetMemoryBytes(),
		OS:           m.GetOs(),
		Arch:         m.GetArch(),
		Kinds:        m.GetKinds(),
		Speed:        int(m.GetSpeed()),
		Load:         float64(m.GetLoad()) / 100,
		Reachability: network.Reachability(m.GetReachability()),
		Site:         m.GetSite(),
		Owner:        m.GetOwner(),
		Machine:      m.GetMachine(),
		Position:     fromPB(m.GetPosition()),
		History:      history(m.GetUpSeconds(), m.GetEnds()),
		Protocol:     int(m.GetProtocol()),
		Release:      m.GetRelease(),
		Issued:       time.UnixMilli(m.GetIssued()),
		Expires:      time.UnixMilli(m.GetExpires()),
	}
	return nil
}

// history returns the history that a peer claims, limited to the plausible maximum.
func history(upSeconds uint64, ends uint32) reliability.History {
	return reliability.History{
		Up:   time.Duration(min(upSeconds, uint64(reliability.MaxUp/time.Second))) * time.Second,
		Ends: int(min(ends, reliability.MaxEnds)),
	}
}

// sealOffer signs o with its peer's key and returns the envelope's bytes.
func sealOffer(o Offer, key crypto.PrivKey) ([]byte, error) {
	if err := o.valid(); err != nil {
		return nil, fmt.Errorf("seal offer: %w", err)
	}
	return sealed.Seal(&o, key)
}

// openOffer decodes an envelope received from the peer from and returns its offer. The offer must be signed by
// from itself, belong to this network and protocol version, be plausible, and not be expired at now.
// Otherwise openOffer returns a *Refusal with the reason.
func openOffer(data []byte, from p2ppeer.ID, network string, now time.Time) (Offer, error) {
	var o Offer
	signer, err := sealed.Open(data, maxEnvelope, &o)
	if err == nil && (o.Peer != from || signer != from) {
		err = errors.New("signed by another peer")
	}
	if err != nil {
		return Offer{}, &Refusal{BadOffer, err}
	}
	if o.Protocol != version.Protocol {
		return Offer{}, refuse(OtherVersion, "protocol %d, ours is %d", o.Protocol, version.Protocol)
	}
	if err := o.valid(); err != nil {
		return Offer{}, &Refusal{BadOffer, err}
	}
	if o.Network != network {
		return Offer{}, refuse(OtherNetwork, "network %q, ours is %q", o.Network, network)
	}
	if err := o.current(now); err != nil {
		return Offer{}, &Refusal{Expired, err}
	}
	return o, nil
}

// valid rejects implausible numbers and unprintable names.
func (o *Offer) valid() error {
	if o.SlotsTotal < 0 || o.SlotsTotal > maxSlots || o.SlotsFree < 0 || o.SlotsFree > o.SlotsTotal {
		return fmt.Errorf("slots: %d of %d free", o.SlotsFree, o.SlotsTotal)
	}
	if o.MaxJobs < 0 || o.MaxJobs > maxSlots || o.Jobs < 0 || o.Jobs > maxSlots {
		return fmt.Errorf("jobs: %d of %d", o.Jobs, o.MaxJobs)
	}
	if o.MemoryBytes > maxMemoryBytes {
		return fmt.Errorf("%d bytes of memory", o.MemoryBytes)
	}
	if o.Speed < 0 || o.Speed > maxSpeed || !(o.Load >= 0 && o.Load <= maxLoad) {
		return fmt.Errorf("speed %d, load %v", o.Speed, o.Load)
	}
	if o.Reachability < network.ReachabilityUnknown || o.Reachability > network.ReachabilityPrivate {
		return fmt.Errorf("reachability %d", o.Reachability)
	}
	if o.Position != nil {
		if err := checkCoordinate(o.Position); err != nil {
			return err
		}
	}
	if len(o.Kinds) > maxKinds {
		return fmt.Errorf("%d program kinds", len(o.Kinds))
	}
	names := append([]string{o.Network, o.OS, o.Arch, o.Release}, o.Kinds...)
	for _, declared := range []string{o.Site, o.Owner, o.Machine} {
		if declared != "" {
			names = append(names, declared)
		}
	}
	for _, name := range names {
		if !validToken(name) {
			return fmt.Errorf("name %.80q: want 1 to %d letters, digits or . _ - +", name, maxToken)
		}
	}
	if life := o.Expires.Sub(o.Issued); life <= 0 || life > maxLifetime {
		return fmt.Errorf("lifetime of %v", life)
	}
	return nil
}

// current returns an error if o is not valid at now, with tolerance for clock skew.
func (o *Offer) current(now time.Time) error {
	if ahead := o.Issued.Sub(now); ahead > clockSkew {
		return fmt.Errorf("issued %v in the future: check the clocks", ahead.Round(time.Second))
	}
	if late := now.Sub(o.Expires); late > clockSkew {
		return fmt.Errorf("expired %v ago: check the clocks", late.Round(time.Second))
	}
	return nil
}

// full returns why o has nothing for a new job, or "".
func (o *Offer) full() string {
	switch {
	case o.SlotsFree == 0:
		return fmt.Sprintf("slots: 0 of %d free", o.SlotsTotal)
	case o.MaxJobs > 0 && o.Jobs >= o.MaxJobs:
		return fmt.Sprintf("jobs: %d of %d running", o.Jobs, o.MaxJobs)
	}
	return ""
}

// Free returns how many slots a new job can have now.
func (o *Offer) Free() int {
	if o.full() != "" {
		return 0
	}
	return o.SlotsFree
}

// validToken reports whether s is a short printable name that is safe in a protocol ID, on a terminal and
// in a log.
func validToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-', c == '+':
		default:
			return false
		}
	}
	return true
}
