package status

import (
	"runtime"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Status is the state of a peer, as shown to its owner.
type Status struct {
	Peer        string        `json:"peer"` // ID
	Release     string        `json:"release"`
	Protocol    int           `json:"protocol"`
	Network     string        `json:"network"`
	Home        string        `json:"home"`
	Process     int           `json:"process"` // process ID
	Since       time.Time     `json:"since"`
	Addresses   []string      `json:"addresses"`
	Slots       Slots         `json:"slots"`
	Granted     *Granted      `json:"granted,omitempty"` // limits of jobs, or nil if none run here
	Use         Use           `json:"use"`               // resources that the peer itself uses
	Unprotected []Unprotected `json:"unwalled"`          // missing sandbox layers for native programs
	Unread      []Unread      `json:"unread,omitempty"`  // suspend rules that cannot be evaluated
	Hosted      []HostedJob   `json:"hosted"`            // jobs that hold slots here
	Submitted   []Submitted   `json:"submitted"`         // jobs submitted through this peer
	Connections []Connection  `json:"connections"`       // connected peers
	Known       []Known       `json:"known"`             // peers that have answered a search, nearest first
}

// Slots counts the slots by state. The four states add up to Total. After a change to fewer slots, jobs keep
// theirs, so the sum may be higher for a while.
type Slots struct {
	Total     int  `json:"total"`
	Free      int  `json:"free"`
	Held      int  `json:"held"`      // awaiting their submitter's confirmation
	Confirmed int  `json:"confirmed"` // awaiting their processes
	Running   int  `json:"running"`
	Draining  bool `json:"draining"` // no new jobs are accepted

	// Paused is the rule that suspends jobs here: the peer accepts no jobs of other users and hands jobs over.
	Paused string `json:"paused,omitempty"`
	// NoDisk reports that too little disk space is free for jobs of other users.
	NoDisk bool `json:"no_disk,omitempty"`
}

// Use is the peer's own resource use, without the processes of jobs. On an idle peer it does not grow.
type Use struct {
	Memory     uint64 `json:"memory"`     // bytes
	Goroutines int    `json:"goroutines"` // including some for each connection and each stream
	Streams    int    `json:"streams"`    // open streams to other peers
}

// A HostedJob is a job that has slots here (O3). Program, Processes and Since are known once its processes
// are being started.
type HostedJob struct {
	Job       string         `json:"job"`
	Submitter string         `json:"submitter"` // peer ID
	State     string         `json:"state"`
	Slots     int            `json:"slots"`
	Expires   time.Time      `json:"expires,omitzero"` // expiry of the reservation, unless the job runs
	Program   string         `json:"program,omitempty"`
	Digest    string         `json:"digest,omitempty"` // digest of the program
	Kind      string         `json:"kind,omitempty"`   // kind of the program: native or wasm
	Class     string         `json:"class,omitempty"`  // class of the submitter, in the owner's policy
	Processes []view.Process `json:"processes,omitempty"`
	Channels  []Channel      `json:"channels,omitempty"` // opened by the processes to other peers
	Since     time.Time      `json:"since,omitzero"`
	Use       launch.Use     `json:"use,omitzero"` // resource use while the job runs
	// Paused is when its processes were suspended, or zero if they are not suspended.
	Paused time.Time `json:"paused,omitzero"`
}

// Submitted is a job that was submitted through this peer and is not over.
type Submitted struct {
	submit.Status
	// Detached is when its last p2prun detached, or zero if a p2prun is attached.
	Detached time.Time `json:"unheard,omitzero"`
}

// Known is another peer, as of its last answer.
type Known struct {
	Peer     string        `json:"peer"` // ID
	OS       string        `json:"os"`
	Arch     string        `json:"arch"`
	Kinds    []string      `json:"kinds,omitempty"` // kinds of programs that the peer accepts from any submitter: native, wasm
	Total    int           `json:"slotsTotal"`
	Free     int           `json:"slotsFree"`
	Memory   uint64        `json:"memory"`       // memory of the machine, in bytes, or 0 if unknown
	Speed    int           `json:"speed"`        // speed of one processor, in Mflop/s, or 0 if unknown
	Load     float64       `json:"load"`         // running processes per processor
	Reached  string        `json:"reachability"` // Public, Private or Unknown
	Site     string        `json:"site,omitempty"`
	Owner    string        `json:"owner,omitempty"` // in a private network the signed name, else that in the offer
	RTT      time.Duration `json:"rtt"`             // nanoseconds
	Answered time.Time     `json:"answered"`
}

// KnownPeer describes a peer that has answered a search; owner is the name to show for its owner.
func KnownPeer(k discovery.Known, owner string) Known {
	o := k.Offer
	return Known{
		Peer: k.AddrInfo.ID.String(),
		OS:   o.OS, Arch: o.Arch, Kinds: o.Kinds,
		Total: o.SlotsTotal, Free: o.SlotsFree,
		Memory: o.MemoryBytes, Speed: o.Speed, Load: o.Load,
		Reached: o.Reachability.String(), Site: o.Site, Owner: owner,
		RTT: k.RTT, Answered: k.Answered,
	}
}

// HostedBy describes the jobs that hold slots here, with their channels. The details of jobs whose processes are
// being started come from launched.
func HostedBy(s reservation.Status, launched []launch.JobStatus, channels map[string][]launch.Channel, connections []Connection) []HostedJob {
	jobs := []HostedJob{} // a list in JSON even when empty
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
	return jobs
}

// UseOf returns the resources that this process and the host use.
func UseOf(h host.Host) Use {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Use{Memory: m.Sys - m.HeapReleased, Goroutines: runtime.NumGoroutine()}
	_ = h.Network().ResourceManager().ViewSystem(func(s network.ResourceScope) error {
		stat := s.Stat()
		u.Streams = stat.NumStreamsInbound + stat.NumStreamsOutbound
		return nil // ViewSystem fails only if this function does
	})
	return u
}
