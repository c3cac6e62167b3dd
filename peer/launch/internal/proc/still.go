package proc

import (
	"maps"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// A Stillness finds out of the processes of one program, which have all been told to stop (SIGSTOP) at one
// moment, when they stand, and whether somebody has them go on.
//
// Who is told to stop does so before his next own instruction; a system call that he is in goes to its end
// before, which may take long. Once he stands he stays so until somebody sends SIGCONT to him: a timer of
// his, or another process, which itself has not stopped yet or was woken. A child is told what its parent
// was told while it was made. So it goes in rounds: all are looked at, and then all are told again.
//
//	scene ── told ── (measured) ── scene ── told: nobody has moved if both scenes are the same, and nobody
//	                                              was born from the telling before to the one after
//
// Who moves although he stood is woken. So is who takes what he was told twice: who has, stands, and what he
// is told again waits until SIGCONT takes it away. And so are those of whom more are born than there are to
// be making one. An honest process can be hit by a SIGCONT that was under way. It is not, again and again. Where
// nobody knows who was born, so is who moves again and again and was not there when all were told.
//
// Who does not stand yet when they go on may be making a child. It was told what he was, the kernel stops it as
// soon as it is there, and SIGCONT to him does not reach it: it is looked for until he is through with that.
//
// It is a pure state: what the kernel says goes in, and what follows comes out.
type Stillness struct {
	seen    bool // they were, once
	first   Scene
	scene   Scene
	born    supervisor.Born
	births  int            // since they were told first, or since there were too many
	threads int            // the most that there were
	takes   map[int]int    // how often each has taken what it was told
	slips   map[int]int    // how often each thread has gone from a processor although it stood
	before  map[int]stance // what they did before they were told
	known   map[int]bool   // all that were ever seen, or were there before, but for those that ended before all stood
	woken   int            // rounds in which somebody was, for sure
	moved   int            // rounds in which somebody has moved who was not just late
	still   bool           // all have stood since they were seen last but one
	late    map[int]int    // who went on before they stood: looks in a row in which each did not wait
}

// A Scene is what some processes do, by their numbers.
type Scene map[int]stance

// A stance is what a process does that has not ended.
type stance struct {
	threads map[int]thread
	parent  int
	told    bool // it is yet to take what it was told
	ends    bool // it is being ended, and takes nothing any more
	unseen  bool // this peer could not look at all of it
}

// A thread does something, and has gone from a processor so many times: as long as the number stays the
// same, one that did not run has not.
type thread struct {
	does  activity
	turns int64
}

type activity int8

const (
	runs   activity = iota // or is to
	rests                  // until something happens, or a signal comes
	waits                  // in a system call, for what no signal ends
	stands                 // stopped
)

// How often honest processes may seem to be woken until they stand. The rounds are to come after each other
// the later the longer it takes.
const (
	mostWoken   = 3
	mostMoved   = 16
	spareBirths = 16 // threads of the supervisor
	mostLooks   = 64 // ever later ones, in which who may be making a child runs
	lastLook    = 32 // a list of processes is older than what is seen of them: who has made one may not have been on it
)

// NewStillness begins with what processes did before they were told first; born was last then. Whoever stands is
// asleep: his own program wants that.
func NewStillness(before Scene, born supervisor.Born) *Stillness {
	s := &Stillness{before: before, born: born, takes: make(map[int]int), slips: make(map[int]int), known: make(map[int]bool)}
	s.meet(before)
	return s
}

func (s *Stillness) meet(all Scene) {
	for pid := range all {
		s.known[pid] = true
	}
}

// See takes what processes do now, and who was born last when they were then told again. It reports
// whether they have stood ever since they were seen last, and whether somebody was woken since, for sure.
func (s *Stillness) See(now Scene, born supervisor.Born) (still, roused bool) {
	last, first, births := s.scene, !s.seen, birthsSince(s.born, born)
	s.births += births
	s.seen, s.scene, s.born = true, now, born
	s.meet(now)
	if first {
		s.first = now
		return false, false
	}
	changed, late := s.compare(last, now)
	changed = changed || births > 0
	if roused = s.wakes(last, now); roused {
		s.woken++
	} else if changed && (!late || births > 0) {
		s.moved++
	}
	if s.still = !changed && now.quiet(); s.still && len(now) > 0 {
		s.forget()
	}
	return s.still, roused
}

// forget forgets those that have ended while the others stood: in an hour their numbers may be those of others, of
// the owner's own programs.
func (s *Stillness) forget() {
	maps.DeleteFunc(s.known, func(pid int, _ bool) bool {
		_, there := s.scene[pid]
		return !there
	})
}

// birthsSince is how many were born between two times; one, if nobody knows how many: the numbers have begun
// again, or could not be read.
func birthsSince(last, now supervisor.Born) int {
	if now < last || last == 0 && now > 0 {
		return 1
	}
	return int(now - last)
}

// Restless reports whether they go on in spite of all. Without walls, where they are not told at one
// moment, that may be by chance. Where births are counted, only so many move as are woken or born; it can take
// long on a busy machine until the last of them has.
func (s *Stillness) Restless() bool {
	return s.woken >= mostWoken || s.born == 0 && s.moved >= mostMoved
}

// compare says whether somebody has done something, and whether only those have who may still be in
// the system call in which they were told first.
func (s *Stillness) compare(last, now Scene) (changed, late bool) {
	late = true
	for pid, is := range now {
		was, there := last[pid]
		if there && was.same(is) {
			continue
		}
		changed = true
		_, known := s.first[pid]
		late = late && known && s.takes[pid] < 2
	}
	for pid := range last {
		if _, there := now[pid]; there {
			continue
		}
		changed = true
		_, known := s.first[pid]
		late = late && known
	}
	return changed, late
}

// wakes reports whether somebody has gone on for sure, although he was told to stop.
func (s *Stillness) wakes(last, now Scene) (woken bool) {
	threads := 0
	for pid, is := range now {
		threads += len(is.threads)
		was, there := last[pid]
		if !there || is.ends {
			continue
		}
		if !is.told && !was.same(is) {
			s.takes[pid]++
			woken = woken || s.takes[pid] > 1
		}
		for id, t := range is.threads {
			if before, there := was.threads[id]; there && before.does == stands && t != before {
				s.slips[id]++ // it stands for others a moment before it goes from the processor
				woken = woken || t.does != stands || s.slips[id] > 1
			}
		}
	}
	if s.threads = max(s.threads, threads); s.births > s.threads+spareBirths {
		s.births, woken = 0, true
	}
	return woken
}

// some reports whether a thread does that.
func (s stance) some(does activity) bool {
	for _, t := range s.threads {
		if t.does == does {
			return true
		}
	}
	return false
}

// stood reports whether a process was seen to stand.
func (s stance) stood() bool {
	return len(s.threads) > 0 && !s.unseen && !s.some(runs) && !s.some(rests) && !s.some(waits)
}

// same reports whether a process has done nothing between two times.
func (s stance) same(o stance) bool { return maps.Equal(s.threads, o.threads) }

// quiet reports whether nobody runs.
func (s Scene) quiet() bool {
	for _, p := range s {
		if p.unseen {
			return false
		}
		for _, t := range p.threads {
			if t.does == runs || t.does == rests {
				return false
			}
		}
	}
	return true
}

// Halted returns those that are to go on: who stands because he was told to, or has been there since they were; all
// but who is asleep.
func (s *Stillness) Halted() (pids []int) {
	s.late = make(map[int]int)
	for pid := range s.known {
		if s.asleep(pid) {
			continue
		}
		pids = append(pids, pid)
		switch {
		case !s.scene[pid].stood():
			s.late[pid] = 0
		case !s.still:
			s.late[pid] = lastLook
		}
	}
	return pids
}

// Late reports whether some went on before they stood, and may still be making a child.
func (s *Stillness) Late() bool { return len(s.late) > 0 }

// Made returns the children that are to go on now, which were made by those who were late. It takes what processes
// do by then, as often as somebody is late.
func (s *Stillness) Made(now Scene) (pids []int) {
	pids = s.children(now)
	for pid := range s.late {
		switch is := now[pid].without(s.scene[pid]); {
		case is.unseen || is.some(waits):
			s.late[pid] = 0
		case is.some(runs):
			s.late[pid]++
		default:
			s.late[pid] += mostLooks - lastLook
		}
	}
	maps.DeleteFunc(s.late, func(_, looks int) bool { return looks >= mostLooks })
	for _, pid := range pids {
		s.known[pid], s.late[pid] = true, 0 // it may have been told as it made one itself
	}
	return pids
}

// without leaves out the threads that stood, and those that came later.
func (s stance) without(stood stance) stance {
	if len(stood.threads) == 0 || stood.unseen {
		return s
	}
	s.threads = maps.Clone(s.threads)
	maps.DeleteFunc(s.threads, func(id int, _ thread) bool {
		was, there := stood.threads[id]
		return !there || was.does == stands
	})
	return s
}

// Awake is a scene without those who stand because somebody was late.
func (s *Stillness) Awake(now Scene) Scene {
	awake := maps.Clone(now)
	for _, pid := range s.children(now) {
		delete(awake, pid)
	}
	return awake
}

// children are those who stand, or are told to, whom nobody has seen before, and whom somebody has made who is late.
func (s *Stillness) children(now Scene) (pids []int) {
	gone := false
	for pid := range s.late {
		_, there := now[pid]
		gone = gone || !there
	}
	for pid, is := range now {
		_, late := s.late[is.parent]
		_, there := now[is.parent]
		if (late || gone && !there) && !s.known[pid] && (is.told || is.some(stands)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// asleep reports whether a process stood before it was told to, and has done nothing since: its own program
// wants that, and it is not to be woken.
func (s *Stillness) asleep(pid int) bool {
	before, there := s.before[pid]
	if !there || s.seen && !s.scene[pid].same(before) {
		return false
	}
	for _, t := range before.threads {
		if t.does != stands {
			return false
		}
	}
	return true
}
