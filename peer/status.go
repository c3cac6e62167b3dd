package peer

import (
	"context"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/presence"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// A Status is what the owner sees of a peer.
type Status struct {
	Peer        string       `json:"peer"` // ID
	Release     string       `json:"release"`
	Protocol    int          `json:"protocol"`
	Network     string       `json:"network"`
	Home        string       `json:"home"`
	Process     int          `json:"process"` // of the operating system
	Since       time.Time    `json:"since"`
	Addresses   []string     `json:"addresses"`
	Slots       Slots        `json:"slots"`
	Granted     *Granted     `json:"granted,omitempty"` // to jobs; nil: none run here
	Use         Use          `json:"use"`               // of the machine, by the peer itself
	Unwalled    []Unwalled   `json:"unwalled"`          // from what native programs are not kept here
	Unread      []Unread     `json:"unread,omitempty"`  // rules by which it is to pause and cannot tell
	Hosted      []HostedJob  `json:"hosted"`            // jobs that hold slots here
	Submitted   []Submitted  `json:"submitted"`         // jobs started from here
	Connections []Connection `json:"connections"`       // peers with a connection
	Known       []Known      `json:"known"`             // peers that have answered a search from here, nearest first
}

// Slots says what has become of the slots: the rest make up the total.
type Slots struct {
	Total     int  `json:"total"`
	Free      int  `json:"free"`
	Held      int  `json:"held"`      // waiting for their submitter's word
	Confirmed int  `json:"confirmed"` // waiting for their processes
	Running   int  `json:"running"`
	Draining  bool `json:"draining"` // nothing new is taken

	// Paused is the rule by which nothing of others is taken, and what can be is handed over.
	Paused string `json:"paused,omitempty"`
	// NoDisk says that too little disk is free for a job of others.
	NoDisk bool `json:"no_disk,omitempty"`
}

// Unread is a rule of pausing of which the machine does not say whether it is so.
type Unread = presence.Unread

// Use is what a peer costs its machine, the processes of jobs left out. Where nothing happens it
// does not grow.
type Use struct {
	Memory     uint64 `json:"memory"`     // bytes
	Goroutines int    `json:"goroutines"` // of which some belong to each connection and each stream
	Streams    int    `json:"streams"`    // open with other peers
}

// A HostedJob is a job of somebody that has slots here (O3). Program, Processes
// and Since are known from when its processes are being started.
type HostedJob struct {
	Job       string         `json:"job"`
	Submitter string         `json:"submitter"` // peer ID
	State     string         `json:"state"`
	Slots     int            `json:"slots"`
	Expires   time.Time      `json:"expires,omitzero"` // unless it runs
	Program   string         `json:"program,omitempty"`
	Digest    string         `json:"digest,omitempty"` // of the program
	Kind      string         `json:"kind,omitempty"`   // of the program: native or wasm
	Class     string         `json:"class,omitempty"`  // of the submitter, in the owner's policy
	Processes []view.Process `json:"processes,omitempty"`
	Channels  []Channel      `json:"channels,omitempty"` // that they have opened to other peers
	Since     time.Time      `json:"since,omitzero"`
	Use       launch.Use     `json:"use,omitzero"` // of the machine, while it runs
	// Paused is since when its processes stand still, as the owner needs the machine.
	Paused time.Time `json:"paused,omitzero"`
}

// Submitted is a job that was started from here and is not over.
type Submitted struct {
	job.Status
	// Unheard is since when no p2prun listens to it; zero: one does.
	Unheard time.Time `json:"unheard,omitzero"`
}

// Known is another peer, as it was when it last answered.
type Known struct {
	Peer     string        `json:"peer"` // ID
	OS       string        `json:"os"`
	Arch     string        `json:"arch"`
	Kinds    []string      `json:"kinds,omitempty"` // of programs that it accepts of everybody: native, wasm
	Total    int           `json:"slotsTotal"`
	Free     int           `json:"slotsFree"`
	Memory   uint64        `json:"memory"`       // of the machine, in bytes; 0: unknown
	Speed    int           `json:"speed"`        // of one processor, in Mflop/s; 0: unknown
	Load     float64       `json:"load"`         // running processes for each processor
	Reached  string        `json:"reachability"` // Public, Private or Unknown
	Site     string        `json:"site,omitempty"`
	Owner    string        `json:"owner,omitempty"` // as the owner of a private network has signed it, else as it says
	RTT      time.Duration `json:"rtt"`             // nanoseconds
	Answered time.Time     `json:"answered"`
}

// Status returns the state of the peer now. It measures how far away others are, for
// a second at most.
func (p *Peer) Status(ctx context.Context) Status {
	s := Status{
		Peer:        p.ID().String(),
		Release:     version.Release,
		Protocol:    version.Protocol,
		Network:     p.network,
		Home:        string(p.home),
		Process:     os.Getpid(),
		Since:       p.started,
		Addresses:   p.Addresses(),
		Granted:     p.granted(),
		Use:         p.use(),
		Unwalled:    p.unwalled(),
		Unread:      p.unread(),
		Hosted:      []HostedJob{}, // a list in JSON even when it is empty
		Submitted:   []Submitted{},
		Connections: p.connections(ctx),
		Known:       []Known{},
	}
	if p.slots != nil {
		s.Slots, s.Hosted = p.slotStatus(s.Connections)
	}
	for _, j := range p.submitter.Jobs() {
		s.Submitted = append(s.Submitted, Submitted{j, p.control.unheard(j.Job)})
	}
	for _, k := range p.discovery.Peers() {
		s.Known = append(s.Known, Known{
			Peer: k.AddrInfo.ID.String(),
			OS:   k.Offer.OS, Arch: k.Offer.Arch, Kinds: k.Offer.Kinds,
			Total: k.Offer.SlotsTotal, Free: k.Offer.SlotsFree,
			Memory: k.Offer.MemoryBytes, Speed: k.Offer.Speed, Load: k.Offer.Load,
			Reached: k.Offer.Reachability.String(), Site: k.Offer.Site, Owner: p.ownerOf(k.AddrInfo.ID, k.Offer),
			RTT: k.RTT, Answered: k.Answered,
		})
	}
	return s
}

func (p *Peer) use() Use {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Use{Memory: m.Sys - m.HeapReleased, Goroutines: runtime.NumGoroutine()}
	_ = p.host.Network().ResourceManager().ViewSystem(func(s network.ResourceScope) error {
		stat := s.Stat()
		u.Streams = stat.NumStreamsInbound + stat.NumStreamsOutbound
		return nil // the only error that there is
	})
	return u
}

func (p *Peer) slotStatus(connections []Connection) (Slots, []HostedJob) {
	s := p.slots.Snapshot()
	launched, channels := p.launcher.Jobs(), p.launcher.Channels()
	jobs := []HostedJob{}
	for _, j := range s.Jobs {
		h := HostedJob{
			Job: j.Job, Submitter: j.Submitter.String(), State: j.State.String(),
			Slots: j.Slots, Expires: j.Expires,
		}
		i := slices.IndexFunc(launched, func(l launch.JobStatus) bool { return l.Job == j.Job && l.Submitter == j.Submitter })
		if i >= 0 {
			l := launched[i]
			h.State, h.Program, h.Processes, h.Since = string(l.State), l.Name, l.Processes, l.Since
			h.Digest, h.Kind, h.Class, h.Use = l.Digest, string(l.Kind), string(l.Class), l.Use
			h.Paused = l.Paused
			h.Channels = channelsOf(channels[j.Job], connections)
		}
		jobs = append(jobs, h)
	}
	return Slots{
		Total: s.Total, Free: s.Free, Held: s.Held, Confirmed: s.Confirmed, Running: s.Running,
		Draining: s.Draining, Paused: p.pausedBy(), NoDisk: p.fullDisk(),
	}, jobs
}
