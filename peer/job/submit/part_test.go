package submit

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// The messages of a part: each method is a line of a script.

// prepared redeems the key, and answers Prepare.
func (p *part) prepared(problem string) {
	if problem == "" {
		if _, err := p.peer.slots.Redeem(p.key, p.spec.ID, p.spec.Submitter); err != nil {
			p.Errorf("redeem the key: %v", err)
		}
		p.redeemed = true
	}
	p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Prepared{Prepared: &jobpb.Prepared{Error: problem}}})
}

// started waits for Start, and answers it.
func (p *part) started(problem string) {
	await(p, (*jobpb.ToPeer).GetStart)
	p.say(startedMessage(problem))
}

func startedMessage(problem string) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Started{Started: &jobpb.Started{Error: problem}}}
}

// start stages and starts, and returns when all other peers have too: the job runs.
func (p *part) start() {
	p.prepared("")
	p.started("")
	p.joining = await(p, (*jobpb.ToPeer).GetJoin)
	p.agree()
}

// agree joins the view group.
func (p *part) agree() {
	m := p.joining
	if len(m.Views) == 0 || p.peer == p.own {
		return
	}
	var peers [][]byte
	for _, member := range m.Views {
		peers = append(peers, m.Group[member])
	}
	p.vote(&jobpb.Agree{Peers: peers, First: uint32(len(peers))})
}

// agreeLate joins the view group for a part that came later, when it has been told to begin.
func (p *part) agreeLate() {
	for _, m := range p.kept {
		if a := m.GetAgree(); a != nil && p.views == nil {
			p.vote(a)
		}
	}
}

func (p *part) vote(m *jobpb.Agree) {
	c := viewgroup.GroupConfig{
		Job: p.spec.ID, First: int(m.First), Members: viewgroup.Members(int(m.First)), View: view.New(p.spec.N, p.spec.R), RunsOn: make(map[view.Process]int),
		Committed: func([]viewgroup.Committed, view.View) {}, Came: func(viewgroup.Newcomer) {}, Contact: func(viewgroup.Contact) {},
	}
	for i, number := range m.RunsOn {
		c.RunsOn[c.View.Processes()[i]] = int(number)
	}
	for i, b := range m.Peers {
		id := p2ppeer.ID(b)
		if c.Peers = append(c.Peers, id); id == p.peer.ID() {
			c.Self = i
		}
	}
	var err error
	if p.views, err = p.peer.views.Join(c); err != nil {
		p.Error(err)
	}
}

// join joins the detector group.
func (p *part) join() {
	m := p.joining
	c := faultdetect.GroupConfig{
		Job: jobpb.GroupAgain(p.spec.ID, m.Generation), Period: time.Duration(m.PeriodNs), Offset: m.Heartbeat, Hang: time.Duration(m.HangNs),
		Verdict: func(faultdetect.Verdict) {},
	}
	for i, id := range m.Group {
		c.Members = append(c.Members, p2ppeer.ID(id))
		if p2ppeer.ID(id) == p.peer.ID() {
			c.Self = i
		}
	}
	var err error
	if p.group, err = p.peer.detector.Join(c); err != nil {
		p.Error(err)
	}
}

// enter reports that all processes have called mpj.Init, and waits until they may leave it.
func (p *part) enter() {
	for _, q := range p.processes {
		p.initialized(q)
	}
	await(p, (*jobpb.ToPeer).GetBegin)
	p.begun = true
	p.agreeLate()
}

// awaitVote waits until a new peer has a vote in the view group. Until then the submitter's peer may have one more voter
// only, this peer, and neither of them may be lost.
func (p *part) awaitVote(of p2ppeer.ID) {
	for timeout := time.After(eventTimeout); !p.views.Votes(of); {
		select {
		case <-time.After(viewgroup.TickPeriod):
		case <-timeout:
			p.Error("the new peer got no vote")
			return
		}
	}
}

// initialized reports that q has called mpj.Init.
func (p *part) initialized(q view.Process) {
	p.say(initializedMessage(q))
}

func initializedMessage(q view.Process) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Initialized{Initialized: &jobpb.Initialized{
		Process: jobpb.FromProcess(q), Key: make([]byte, proclink.KeySize),
	}}}
}

func outputMessage(q view.Process, s job.Stream, first uint64, end bool, lines ...string) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Output{Output: &jobpb.Output{
		Process: jobpb.FromProcess(q), Stream: uint32(s), First: first, End: end, Data: []byte(strings.Join(lines, "")),
	}}}
}

// writes sends lines of q's standard output; first is the number of the first line.
func (p *part) writes(q view.Process, first uint64, lines ...string) {
	p.say(outputMessage(q, job.Stdout, first, false, lines...))
}

// closes reports that q has closed both streams, the standard output after count records.
func (p *part) closes(q view.Process, count uint64) {
	p.say(outputMessage(q, job.Stdout, count, true))
	p.say(outputMessage(q, job.Stderr, 0, true))
}

// exits reports how q ended and, if it ended successfully, its account, as a peer does.
func (p *part) exits(q view.Process, e job.Exit) {
	p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Exited{Exited: &jobpb.Exited{
		Process: jobpb.FromProcess(q), Code: int32(e.Code), Signal: e.Signal, Reason: e.Reason, Limit: e.Limit,
		Initialized: e.Initialized, Finalized: e.Finalized,
	}}})
	if e.Good() {
		p.say(accountMessage(q))
	}
}

// ends reports that q has written lines, as all its standard output, and has ended successfully.
func (p *part) ends(q view.Process, lines ...string) {
	p.say(outputMessage(q, job.Stdout, 0, true, lines...))
	p.say(outputMessage(q, job.Stderr, 0, true))
	p.exits(q, job.Exit{Initialized: p.begun, Finalized: p.begun})
}

func accountMessage(q view.Process) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{Process: jobpb.FromProcess(q)}}}
}

// offers answers Collect for q with the given files.
func (p *part) offers(q view.Process, files map[string]string) {
	await(p, (*jobpb.ToPeer).GetCollect)
	p.say(collectedMessage(q, p.put(files), ""))
}

// put offers files and returns their encoded manifest.
func (p *part) put(files map[string]string) []byte {
	dir := p.TempDir()
	var sources []filetransfer.Source
	for name, text := range files {
		from := filepath.Join(dir, filetransfer.DigestOf([]byte(name)).String())
		if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
			p.Error(err)
		}
		sources = append(sources, filetransfer.Source{Path: name, From: from})
	}
	m, err := filetransfer.Build(p.Context(), sources)
	if err != nil {
		p.Error(err)
	}
	encoded, err := m.Marshal()
	if err != nil {
		p.Error(err)
	}
	p.offered = append(p.offered, p.peer.files.Serve(p.spec.ID, []p2ppeer.ID{p.own.ID()}, filetransfer.Locate(m, sources)))
	return encoded
}

func collectedMessage(q view.Process, manifest []byte, problem string) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Collected{Collected: &jobpb.Collected{
		Process: jobpb.FromProcess(q), Manifest: manifest, Error: problem,
	}}}
}
