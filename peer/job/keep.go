package job

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// What a submitter keeps of a job, so that another process of it can go on with the job
// after this one was killed:
//
//	<jobs>/<ID>/job    a Kept, as JSON; replaced as a whole
//	            got    what the user has of each rank's streams, written when a record has been shown:
//	                   a transcript of standard output, and how many records of standard error, in 8 bytes
//	            lock   held by the process that follows the job
//	            work, contents/  for peers that come later: see work.go
//
// All else the job's peers know, until the job has a result. The folder goes when the user
// has that, or its peers have ended their parts since nobody has gone on with the job: with it
// goes the private key.

// A Kept is a job that can be gone on with.
type Kept struct {
	Job      string     `json:"job"`
	Request  Request    `json:"request"`
	Since    time.Time  `json:"since"`
	Ends     time.Time  `json:"ends"`               // as --timeout says; zero: never
	Identity []byte     `json:"identity,omitempty"` // private key of the submitter; see Handed
	Peers    []KeptPeer `json:"peers"`
	Begin    []byte     `json:"begin,omitempty"`  // what peers are told when processes may leave mpj.Init: all the same
	Result   *Result    `json:"result,omitempty"` // once the job has one
	Rest     []Output   `json:"rest,omitempty"`   // then: what the user may not have yet
}

// An Output is something that a rank has printed.
type Output struct {
	Rank    int    `json:"rank"`
	Stream  Stream `json:"stream"`
	Record  uint64 `json:"record,omitempty"`  // see Event
	Records uint64 `json:"records,omitempty"` // likewise
	Data    []byte `json:"data"`
}

// A KeptPeer is a peer that runs processes of a kept job. One that was found again after
// they had failed is there once more, with another process.
type KeptPeer struct {
	Peer      p2ppeer.ID     `json:"peer"`
	Addrs     []string       `json:"addrs"`
	Machine   string         `json:"machine"`
	SlotsOn   string         `json:"slots_on,omitempty"` // the machine by its grant: see reservation.Placement.Machine
	Processes []view.Process `json:"processes"`
	Number    int            `json:"number,omitempty"` // among those who agree on views
	Keys      [][]byte       `json:"keys,omitempty"`   // public, of its processes in order; empty for those that the job began with
}

// keptKeys returns the keys of the processes of a peer, in the form in which they are kept.
func keptKeys(l *link) (keys [][]byte) {
	for _, p := range l.processes {
		keys = append(keys, l.keys[p])
	}
	return keys
}

// keysOf returns the kept keys in the form that a link has.
func (k KeptPeer) keysOf() map[view.Process][]byte {
	keys := make(map[view.Process][]byte)
	for i, p := range k.Processes {
		if i < len(k.Keys) && len(k.Keys[i]) > 0 {
			keys[p] = k.Keys[i]
		}
	}
	return keys
}

// errNotKept says that there is no such job to go on with.
var errNotKept = errors.New("no such job is kept")

// Keeping returns the jobs that are kept in dir, oldest first. It removes those that nobody
// can go on with any more.
func Keeping(dir string) ([]Kept, error) {
	expire(dir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for kept jobs: %w", err)
	}
	var all []Kept
	for _, e := range entries {
		k, err := readKept(filepath.Join(dir, e.Name()))
		if err == nil && k.Job == e.Name() {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Kept) int { return a.Since.Compare(b.Since) })
	return all, nil
}

const (
	// touchPeriod is how often a job that is followed is marked so.
	touchPeriod = 10 * time.Minute
	// keptFor is how long a job is kept that nobody follows. Its peers wait for MaxAway after
	// they have missed their submitter, which may have been there since the last mark.
	keptFor = MaxAway + 2*touchPeriod
)

// expire removes the jobs in dir that nobody follows and nobody has followed for too long.
func expire(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		k := &keeper{dir: filepath.Join(dir, e.Name())}
		if e.IsDir() && time.Since(k.touched()) > keptFor && k.open() == nil {
			k.remove()
			k.close()
		}
	}
}

// touched returns when the job was last marked, or anything else of it kept.
func (k *keeper) touched() (last time.Time) {
	for _, name := range []string{".", "job", "got", "lock"} {
		if info, err := os.Stat(filepath.Join(k.dir, name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// touch marks the job as one that is followed.
func (k *keeper) touch() {
	now := time.Now()
	os.Chtimes(k.dir, now, now)
}

func readKept(dir string) (k Kept, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "job"))
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err == nil {
		err = k.Request.Validate()
	}
	return k, err
}

// Handed reports whether the job was handed to the peer of the home, whose identity it has:
// only that peer can go on with it.
func (k Kept) Handed() bool { return len(k.Identity) == 0 }

// Key returns the submitter's identity, of a job that was not handed to another.
func (k Kept) Key() (crypto.PrivKey, error) {
	key, err := crypto.UnmarshalPrivateKey(k.Identity)
	if err != nil {
		return nil, fmt.Errorf("identity of job %s: %w", k.Job, err)
	}
	return key, nil
}

// A keeper keeps one job that this process follows. A nil keeper keeps nothing.
type keeper struct {
	dir   string
	kept  Kept
	lock  *flock.Flock
	shown *os.File     // the file got
	out   []transcript // by rank: what is noted there of standard output
	left  bool         // another process is to go on with it: peers have yet to be told that the job is over
	told  bool         // the user knows that the job can be gone on with
	got   bool         // the user has the result
}

// keep begins to keep a job of its own.
func (s *Submitter) keep(j *run) (*keeper, error) {
	if s.cfg.Jobs == "" || j.req.R < 2 || j.req.Away == 0 {
		return nil, nil
	}
	k := &keeper{dir: filepath.Join(s.cfg.Jobs, j.spec.ID), kept: Kept{
		Job: j.spec.ID, Request: j.req, Since: j.spec.Created,
	}, out: newTranscripts(j.req.N)}
	if !s.cfg.Resident {
		var err error
		if k.kept.Identity, err = crypto.MarshalPrivateKey(s.cfg.Key); err != nil {
			return nil, fmt.Errorf("encode identity: %w", err)
		}
	}
	if j.req.Timeout > 0 {
		k.kept.Ends = k.kept.Since.Add(j.req.Timeout)
	}
	expire(s.cfg.Jobs)
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, err
	}
	if err := k.open(); err != nil {
		k.remove()
		return nil, err
	}
	return k, nil
}

// Kept returns a job that this submitter can go on with. The error wraps errNotKept.
func (s *Submitter) Kept(id string) (Kept, error) {
	if s.cfg.Jobs == "" || id == "" || strings.ContainsAny(id, `/\.`) {
		return Kept{}, errNotKept
	}
	k, err := readKept(filepath.Join(s.cfg.Jobs, id))
	if err != nil {
		return Kept{}, fmt.Errorf("%w: %s", errNotKept, id)
	}
	if k.Handed() != s.cfg.Resident {
		return Kept{}, fmt.Errorf("%w for this identity: %s", errNotKept, id)
	}
	return k, nil
}

// reopen goes on keeping a job that another process has begun.
func (s *Submitter) reopen(id string) (*keeper, error) {
	if _, err := s.Kept(id); err != nil {
		return nil, err
	}
	k := &keeper{dir: filepath.Join(s.cfg.Jobs, id), told: true}
	err := k.open()
	if err == nil {
		if k.kept, err = readKept(k.dir); err != nil { // it was over meanwhile
			k.close()
			err = fmt.Errorf("%w: %s", errNotKept, id)
		} else if _, k.out, err = k.positions(); err != nil {
			k.close()
		}
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// open takes the lock.
func (k *keeper) open() error {
	k.lock = flock.New(filepath.Join(k.dir, "lock"))
	ok, err := k.lock.TryLock()
	if err != nil {
		return fmt.Errorf("keep the job: %w", err)
	}
	if !ok {
		return fmt.Errorf("another p2prun follows job %s", filepath.Base(k.dir))
	}
	if k.shown, err = os.OpenFile(filepath.Join(k.dir, "got"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		k.lock.Close()
		return fmt.Errorf("keep the job: %w", err)
	}
	return nil
}

// write keeps what is known of the job now.
func (k *keeper) write() error {
	text, err := json.Marshal(k.kept)
	if err != nil {
		return fmt.Errorf("keep the job: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(k.dir, "job"), text); err != nil {
		return fmt.Errorf("keep the job: %w", err)
	}
	return nil
}

// writePeers keeps where the job runs, and has run. Nobody is told of a process that is to
// join before it is kept: so whatever process is in a view is kept.
func (k *keeper) writePeers(e *execution) error {
	if k == nil {
		return nil
	}
	k.kept.Peers = nil
	for _, l := range e.links {
		if l.recruit != nil && l.recruit.phase != recruitJoining {
			continue
		}
		p := KeptPeer{Peer: l.peer, Machine: l.machine, SlotsOn: l.slots.Machine, Processes: l.processes, Number: l.number, Keys: keptKeys(l)}
		for _, b := range e.addrs(l.peer) {
			if a, err := ma.NewMultiaddrBytes(b); err == nil {
				p.Addrs = append(p.Addrs, a.String())
			}
		}
		k.kept.Peers = append(k.kept.Peers, p)
	}
	return k.write()
}

// writeBegin keeps what peers are about to be told, so that none is told something else.
func (k *keeper) writeBegin(m *jobpb.Begin) (err error) {
	if k == nil {
		return nil
	}
	if k.kept.Begin, err = proto.Marshal(m); err != nil {
		return fmt.Errorf("keep the job: %w", err)
	}
	return k.write()
}

// begin returns that, or nil if nobody was told yet.
func (k *keeper) begin() (*jobpb.ToPeer, error) {
	if k.kept.Begin == nil {
		return nil, nil
	}
	m := &jobpb.Begin{}
	if err := proto.Unmarshal(k.kept.Begin, m); err != nil {
		return nil, fmt.Errorf("job %s is kept badly: %w", k.kept.Job, err)
	}
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: m}}, nil
}

// writeResult keeps how the job has ended, and what the user has yet to see, before its
// peers forget it. Of one that is cancelled they have yet to hear.
func (k *keeper) writeResult(r Result, rest []Output) error {
	if k == nil || r.Status == StatusCancelled {
		return nil
	}
	k.kept.Result, k.kept.Rest = &r, rest
	return k.write()
}

// shownSize is how many bytes of the file got a rank takes.
const shownSize = transcriptSize + 8

// note keeps that the user has got the records of an output event, and all before.
func (k *keeper) note(e Event) error {
	if k == nil {
		return nil
	}
	at := int64(e.Rank) * shownSize
	var err error
	if e.Stream == Stdout {
		t := &k.out[e.Rank]
		t.add(e.Record, e.Records, e.Data)
		_, err = k.shown.WriteAt(t.encode(), at)
	} else {
		_, err = k.shown.WriteAt(binary.BigEndian.AppendUint64(nil, e.Record), at+transcriptSize)
	}
	if errors.Is(err, os.ErrClosed) { // it is not kept any more
		return nil
	}
	return err
}

// positions returns how many records of each rank's streams the user has, and what has been printed in those of
// standard output.
func (k *keeper) positions() (counts [][2]uint64, out []transcript, err error) {
	all := make([]byte, shownSize*k.kept.Request.N) // what was never written is 0
	if _, err := k.shown.ReadAt(all, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read how much of the output is shown: %w", err)
	}
	for rank := range k.kept.Request.N {
		b := all[rank*shownSize:]
		t := decodeTranscript([transcriptSize]byte(b))
		counts = append(counts, [2]uint64{t.records, binary.BigEndian.Uint64(b[transcriptSize:])})
		out = append(out, t)
	}
	return counts, out, nil
}

// delivered notes that the user has the result.
func (k *keeper) delivered() {
	if k != nil {
		k.got = true
	}
}

// close lets another process go on with the job.
func (k *keeper) close() {
	if k != nil {
		k.shown.Close()
		k.lock.Close()
	}
}

// leave says that so many peers could not be told that the job is over. One that was
// cancelled is kept for another attempt; else they end by themselves.
func (k *keeper) leave(peers int) {
	if k != nil && k.kept.Result == nil {
		k.left = peers > 0
	}
}

// conclude forgets the job, which is over, unless the user has yet to get its result, and
// knows how: who attaches is told that, and what was printed last, if ctx, which the job had,
// did not end because the user does not want to know.
func (k *keeper) conclude(ctx context.Context) {
	if k == nil || k.kept.Result == nil || k.got || !k.told || errors.Is(context.Cause(ctx), context.Canceled) {
		k.remove()
	}
}

// remove forgets the job, which is over.
func (k *keeper) remove() {
	if k != nil && !k.left {
		os.RemoveAll(k.dir)
	}
}
