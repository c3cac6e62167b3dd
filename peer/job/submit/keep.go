package submit

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
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// What a submitter keeps of a job, so that another process can resume the job after this process
// was killed:
//
//	<jobs>/<ID>/job    a Kept, as JSON; replaced as a whole
//	            got    what the user has of each rank's streams, written after a record was shown:
//	                   a transcript of standard output, and the number of records of standard
//	                   error, in 8 bytes
//	            lock   held by the process that follows the job
//	            work, contents/  for peers that join the job later: see work.go
//
// The job's peers know everything else until the job has a result. The directory is removed when
// the user has the result, or when the peers have ended the job because no process resumed it. The
// private key is removed with it.

// A Kept is a job that another process can resume.
type Kept struct {
	Job      string      `json:"job"`
	Protocol int         `json:"protocol"` // version.Protocol of the process that started the job
	Release  string      `json:"release"`  // version.Release of that process
	Request  Request     `json:"request"`
	Since    time.Time   `json:"since"`
	Ends     time.Time   `json:"ends"`               // deadline by --timeout; zero: none
	Identity []byte      `json:"identity,omitempty"` // private key of the submitter; see Handed
	Peers    []KeptPeer  `json:"peers"`
	Numbers  []int       `json:"numbers,omitempty"` // numbers in the view group of the processes that have resumed the job
	Begin    []byte      `json:"begin,omitempty"`   // encoded message that lets processes leave mpj.Init; equal for all peers
	Result   *job.Result `json:"result,omitempty"`  // nil: no result yet
	Rest     []Output    `json:"rest,omitempty"`    // with Result: output that the user may not have yet
}

// An Output holds records that a rank has printed.
type Output struct {
	Rank    int        `json:"rank"`
	Stream  job.Stream `json:"stream"`
	Record  uint64     `json:"record,omitempty"`  // see Event
	Records uint64     `json:"records,omitempty"` // see Event
	Data    []byte     `json:"data"`
}

// A KeptPeer is a peer that runs processes of a kept job. A peer that was recruited again after its
// processes failed has a second entry, with another process.
type KeptPeer struct {
	Peer      p2ppeer.ID     `json:"peer"`
	Addrs     []string       `json:"addrs"`
	Machine   string         `json:"machine"`
	SlotsOn   string         `json:"slots_on,omitempty"` // machine named in the grant: see reservation.Placement.Machine
	Processes []view.Process `json:"processes"`
	Number    int            `json:"number,omitempty"` // number in the view group
	Keys      [][]byte       `json:"keys,omitempty"`   // public keys of its processes, in their order; empty for those that the job began with
}

// keptKeys returns the public keys of a peer's processes in the form of KeptPeer.Keys.
func keptKeys(l *link) (keys [][]byte) {
	for _, p := range l.processes {
		keys = append(keys, l.keys[p])
	}
	return keys
}

// keysOf returns the kept keys in the form of link.keys.
func (k KeptPeer) keysOf() map[view.Process][]byte {
	keys := make(map[view.Process][]byte)
	for i, p := range k.Processes {
		if i < len(k.Keys) && len(k.Keys[i]) > 0 {
			keys[p] = k.Keys[i]
		}
	}
	return keys
}

// errNotKept reports that there is no such job to resume.
var errNotKept = errors.New("no such job is kept")

// Keeping returns the jobs that are kept in dir, oldest first. It removes those that can no longer
// be resumed. A job of another release, which CheckVersion finds, may lack everything but its ID.
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
		if k.Job == e.Name() && (err == nil || k.CheckVersion() != nil) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Kept) int { return a.Since.Compare(b.Since) })
	return all, nil
}

const (
	// touchPeriod is how often the process that follows a job updates its time stamp.
	touchPeriod = 10 * time.Minute
	// keptFor is how long a job is kept that no process follows. Its peers wait for MaxAway after
	// the submitter became silent, which may have been up to touchPeriod after the last time stamp.
	keptFor = MaxAway + 2*touchPeriod
)

// expire removes the jobs in dir that no process follows, and that none has followed for keptFor.
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

// touched returns the time of the last change to the job's files.
func (k *keeper) touched() (last time.Time) {
	for _, name := range []string{".", "job", "got", "lock"} {
		if info, err := os.Stat(filepath.Join(k.dir, name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// touch updates the time stamp of a job that is followed.
func (k *keeper) touch() {
	now := time.Now()
	os.Chtimes(k.dir, now, now)
}

func readKept(dir string) (k Kept, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "job"))
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	switch wrong := k.CheckVersion(); {
	case k.Job != "" && wrong != nil:
		err = wrong
	case err == nil:
		err = k.Request.Validate()
	}
	return k, err
}

// CheckVersion returns an error if the job was started by a release with another protocol version, which has to
// resume it.
func (k Kept) CheckVersion() error {
	if k.Protocol == version.Protocol {
		return nil
	}
	by := "an earlier release"
	if k.Protocol != 0 {
		by = fmt.Sprintf("release %.20s (protocol %d)", plain(k.Release), k.Protocol)
	}
	return fmt.Errorf("job %.8s cannot be resumed: it was started by %s, and this is release %s (protocol %d); resume it with that release, or start it again",
		k.Job, by, version.Release, version.Protocol)
}

// Handed reports whether the job was handed to the home's own peer, whose identity it uses. Only
// that peer can resume it.
func (k Kept) Handed() bool { return len(k.Identity) == 0 }

// Key returns the submitter's private key, for a job that was not handed to a peer.
func (k Kept) Key() (crypto.PrivKey, error) {
	key, err := crypto.UnmarshalPrivateKey(k.Identity)
	if err != nil {
		return nil, fmt.Errorf("identity of job %s: %w", k.Job, err)
	}
	return key, nil
}

// A keeper records one job that this process follows. A nil keeper records nothing.
type keeper struct {
	dir   string
	kept  Kept
	lock  *flock.Flock
	shown *os.File     // the file "got"
	out   []transcript // by rank: the transcripts of standard output in that file
	left  bool         // another process has to resume it: not all peers know that the job is over
	told  bool         // the user knows that the job can be resumed
	got   bool         // the user has the result

	outdated bool // the file "job" was removed, since it lacks something that the peers know; see outdate
}

// keep starts to record a new job, unless the job cannot be resumed.
func (s *Submitter) keep(j *run) (*keeper, error) {
	if s.cfg.Jobs == "" || j.req.R < 2 || j.req.Away == 0 {
		return nil, nil
	}
	k := &keeper{dir: filepath.Join(s.cfg.Jobs, j.spec.ID), kept: Kept{
		Job: j.spec.ID, Protocol: version.Protocol, Release: version.Release, Request: j.req, Since: j.spec.Created,
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

// Kept returns a job that this submitter can resume. The error wraps errNotKept.
func (s *Submitter) Kept(id string) (Kept, error) {
	if s.cfg.Jobs == "" || id == "" || strings.ContainsAny(id, `/\.`) {
		return Kept{}, errNotKept
	}
	k, err := readKept(filepath.Join(s.cfg.Jobs, id))
	switch {
	case err != nil && k.Job == id && k.CheckVersion() != nil:
		return Kept{}, err
	case err != nil:
		return Kept{}, fmt.Errorf("%w: %s", errNotKept, id)
	case k.Handed() != s.cfg.Resident:
		return Kept{}, fmt.Errorf("%w for this identity: %s", errNotKept, id)
	}
	return k, nil
}

// reopen continues the record of a job that another process has started.
func (s *Submitter) reopen(id string) (*keeper, error) {
	if _, err := s.Kept(id); err != nil {
		return nil, err
	}
	k := &keeper{dir: filepath.Join(s.cfg.Jobs, id), told: true}
	err := k.open()
	if err == nil {
		if k.kept, err = readKept(k.dir); err != nil { // the job ended meanwhile
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

// open takes the lock and opens the file "got".
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

// write replaces the file "job" with the current state.
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

// outdate removes the file "job", which could not be replaced and lacks something that the peers will know: a process
// could not resume the job with it. restore writes the file later. outdate reports whether the file was removed. A file
// that is not found may come back: its folder may be on a disk that is not mounted now.
func (k *keeper) outdate() bool {
	k.outdated = k.outdated || os.Remove(filepath.Join(k.dir, "job")) == nil
	return k.outdated
}

// restore writes the file "job" again if outdate has removed it, and reports whether it did so.
func (k *keeper) restore() bool {
	if k == nil || !k.outdated || k.write() != nil {
		return false
	}
	k.outdated = false
	return true
}

// writePeers records where the job runs and has run. It records a process before any peer learns
// that the process is to join, so every process in a view is recorded.
func (k *keeper) writePeers(m *membership) error {
	if k == nil {
		return nil
	}
	k.kept.Peers = nil
	for _, l := range m.links {
		if l.recruit != nil && l.recruit.phase != recruitJoining {
			continue
		}
		p := KeptPeer{Peer: l.peer, Machine: l.reported.machine, SlotsOn: l.slots.Machine, Processes: l.processes, Number: l.number, Keys: keptKeys(l)}
		for _, b := range m.addrs(l.peer) {
			if a, err := ma.NewMultiaddrBytes(b); err == nil {
				p.Addrs = append(p.Addrs, a.String())
			}
		}
		k.kept.Peers = append(k.kept.Peers, p)
	}
	return k.write()
}

// writeNumber records a number in the view group before this process uses it.
func (k *keeper) writeNumber(number int) error {
	k.kept.Numbers = append(k.kept.Numbers, number)
	return k.write()
}

// writeBegin records the Begin message before it is sent, so that all peers receive the same one.
func (k *keeper) writeBegin(m *jobpb.Begin) (err error) {
	if k == nil {
		return nil
	}
	if k.kept.Begin, err = proto.Marshal(m); err != nil {
		return fmt.Errorf("keep the job: %w", err)
	}
	return k.write()
}

// begin returns the recorded Begin message, or nil if none was sent yet.
func (k *keeper) begin() (*jobpb.ToPeer, error) {
	if k.kept.Begin == nil {
		return nil, nil
	}
	m := &jobpb.Begin{}
	if err := proto.Unmarshal(k.kept.Begin, m); err != nil {
		return nil, fmt.Errorf("the record of job %s is invalid: %w", k.kept.Job, err)
	}
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: m}}, nil
}

// writeResult records how the job has ended, and the output that the user has yet to see, before
// the peers forget the job. It records nothing of a cancelled job, whose peers have yet to be told.
func (k *keeper) writeResult(r job.Result, rest []Output) error {
	if k == nil || r.Status == job.StatusCancelled {
		return nil
	}
	k.kept.Result, k.kept.Rest = &r, rest
	return k.write()
}

// shownSize is the number of bytes per rank in the file "got".
const shownSize = transcriptSize + 8

// note records that the user has the records of an output event and all earlier ones.
func (k *keeper) note(e Event) error {
	if k == nil {
		return nil
	}
	at := int64(e.Rank) * shownSize
	var err error
	if e.Stream == job.Stdout {
		t := &k.out[e.Rank]
		t.add(e.Record, e.Records, e.Data)
		_, err = k.shown.WriteAt(t.encode(), at)
	} else {
		_, err = k.shown.WriteAt(binary.BigEndian.AppendUint64(nil, e.Record), at+transcriptSize)
	}
	if errors.Is(err, os.ErrClosed) { // the job is not kept any more
		return nil
	}
	return err
}

// positions returns the number of records that the user has of each rank's streams, and the
// transcripts of standard output.
func (k *keeper) positions() (counts [][2]uint64, out []transcript, err error) {
	all := make([]byte, shownSize*k.kept.Request.N) // parts that were never written are 0
	if _, err := k.shown.ReadAt(all, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read the position of the shown output: %w", err)
	}
	for rank := range k.kept.Request.N {
		b := all[rank*shownSize:]
		t := decodeTranscript([transcriptSize]byte(b))
		counts = append(counts, [2]uint64{t.records, binary.BigEndian.Uint64(b[transcriptSize:])})
		out = append(out, t)
	}
	return counts, out, nil
}

// rest returns the output that was kept with the result, except the records that were shown later.
func (k *keeper) rest(shown [][2]uint64) (out []Event) {
	for _, o := range k.kept.Rest {
		event := outputEvent(o.Rank, o.Stream, o.Data)
		event.Record, event.Records = o.Record, o.Records
		if event, ok := event.After(shown[o.Rank][o.Stream-1]); ok {
			out = append(out, event)
		}
	}
	return out
}

// delivered records that the user has the result.
func (k *keeper) delivered() {
	if k != nil {
		k.got = true
	}
}

// close releases the lock, so that another process can resume the job.
func (k *keeper) close() {
	if k != nil {
		k.shown.Close()
		k.lock.Close()
	}
}

// leave records that so many peers have not been told that the job is over. A job without a result
// is then kept, so that another process can resume it or try to cancel it again. The peers of a job
// with a result end by themselves.
func (k *keeper) leave(peers int) {
	if k != nil && k.kept.Result == nil {
		k.left = peers > 0
	}
}

// conclude removes the job, unless the user does not have the result yet and knows how to get it:
// Attach then shows the result and the last output. If ctx, which is the job's, was cancelled, the
// user does not want the result.
func (k *keeper) conclude(ctx context.Context) {
	if k == nil || k.kept.Result == nil || k.got || !k.told || errors.Is(context.Cause(ctx), context.Canceled) {
		k.remove()
	}
}

// remove deletes the job's directory, unless another process has to resume the job.
func (k *keeper) remove() {
	if k != nil && !k.left {
		os.RemoveAll(k.dir)
	}
}
