package peer

import (
	"fmt"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
	"github.com/p2pmpi/p2pmpi/peer/owner/uptime"
	"github.com/p2pmpi/p2pmpi/reservation"
)

func (p *Peer) startVolunteer() error {
	var err error
	if p.terms.policy, err = p.cfg.Policy(p.ID(), !p.admission.Gate.Open(), string(p.home)); err != nil {
		return err
	}
	p.terms.home, p.terms.diskFree = p.home, p.cfg.diskFree
	p.terms.logPolicy(p.log, p.cfg.Accept)
	journal, err := p.openJournal()
	if err != nil {
		return err
	}
	p.terms.sandbox = launch.ExamineSandbox(string(p.home))
	p.terms.logSandbox(p.log)
	if p.speed, err = machine.Speed(p.home.Speed()); err != nil {
		return &homedir.Error{Home: string(p.home), Err: err}
	}
	slots := reservation.Limits{Slots: p.cfg.Slots, MaxJobs: p.cfg.MaxJobs, Judge: p.terms.judge}
	p.slots = reservation.NewService(p.net.Host, reservation.Config{Limits: slots, Log: p.log, Machine: machine.Identity(p.cfg.Machine)})
	p.owns("reservation", p.slots.Close)
	stop := p.files.Tell(p.terms.policy.Admits)
	p.owns("answers about cached files", func() error { stop(); return nil })
	return p.startLauncher(journal)
}

func (p *Peer) startLauncher(jobs *journal.Journal) error {
	channels, err := proclink.ParseKinds(p.cfg.Channels)
	if err != nil {
		return fmt.Errorf("channels: %w", err)
	}
	grant, err := p.cfg.Grant(string(p.home), p.cfg.Slots)
	if err != nil {
		return err
	}
	p.launcher, err = launch.NewService(p.net.Host, launch.Config{
		Home:         string(p.home),
		Reservations: p.slots,
		Files:        p.files,
		Detector:     p.detector,
		Views:        p.views,
		DataListen:   p.cfg.dataListen(),
		Channels:     channels,
		Decide:       p.terms.decide,
		Sandbox:      p.terms.sandbox,
		Engine:       p.cfg.chooseEngine(string(p.home), p.terms.sandbox, p.log),
		Readable:     p.cfg.Readable,
		Journal:      jobs,
		Grant:        grant,
		Niceness:     p.cfg.Niceness,
		Dials:        p.net.Dials,
		Punches:      p.net.Punches,
		Mapped:       p.net.Ports.MappedTCP,
		Log:          p.log,
	})
	if err != nil {
		return fmt.Errorf("start the launcher: %w", err)
	}
	p.owns("launcher", p.launcher.Close)
	p.logUnenforced()
	return nil
}

func (p *Peer) offer() discovery.Offer {
	s := p.slots.Snapshot()
	o := discovery.Offer{
		SlotsTotal:  s.Total,
		SlotsFree:   s.Free,
		MaxJobs:     p.cfg.MaxJobs,
		Jobs:        len(s.Jobs),
		MemoryBytes: machine.TotalMemory(),
		Kinds:       p.terms.announced(),
		Speed:       p.speed,
		Load:        machine.Load(),
		Site:        p.cfg.Site,
		Owner:       p.cfg.Owner,
		History:     p.history.At(time.Now()),
	}
	if s.Draining || p.terms.busy() {
		o.SlotsFree = 0
	}
	return o
}

// maxJournal bounds the journal of jobs, in bytes; some thousand jobs fit.
const maxJournal = 2 << 20

// openJournal opens the journal, which records for the owner the jobs that run here and their submitters.
func (p *Peer) openJournal() (*journal.Journal, error) {
	j, err := journal.Open(p.home.Journal(), maxJournal)
	if err != nil {
		return nil, &homedir.Error{Home: string(p.home), Err: err}
	}
	p.owns("journal", j.Close)
	return j, nil
}

// logUnenforced logs the limits that the kernel does not enforce.
func (p *Peer) logUnenforced() {
	for _, u := range p.launcher.Unenforced(p.terms.policy.Limits()...) {
		p.log.Warn().Str("limit", string(u.Limit)).Str("why", u.Why).Str("instead", u.Instead).
			Msg("a limit of programs cannot be enforced here")
	}
}

// presenceEvery is the interval between checks of the suspend rules.
const presenceEvery = 10 * time.Second

// startSuspending suspends the jobs of other users while the owner needs the machine.
func (p *Peer) startSuspending() error {
	rules, err := p.cfg.SuspendPolicy()
	if err != nil || rules.Never() {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { // ends with the peer's life
		tick := time.NewTicker(presenceEvery)
		defer tick.Stop()
		p.terms.suspend.Run(p.life, rules, hostedJobs{p.launcher}, presence.NewMachine("/"), tick.C)
	})
	p.owns("suspend rules", func() error { running.Wait(); return nil })
	return nil
}

// hostedJobs are the jobs that the suspend rules apply to.
type hostedJobs struct{ *launch.Service }

// Suspend suspends the hosted jobs because of rule, or resumes them if rule is empty.
func (h hostedJobs) Suspend(rule string, most time.Duration) {
	h.Pause(launch.Pause{Rule: rule, Most: most})
}

// startHistory starts the record of the times at which this volunteer runs.
func (p *Peer) startHistory() error {
	var err error
	if p.history, err = uptime.Open(p.home.History(), p.started); err != nil {
		return &homedir.Error{Home: string(p.home), Err: err}
	}
	var saver sync.WaitGroup
	saver.Go(func() { p.history.Keep(p.life, p.log) }) // ends with the peer's life
	p.owns("history", func() error {
		saver.Wait()
		return p.history.Save(time.Now(), !p.drained.Load())
	})
	return nil
}
