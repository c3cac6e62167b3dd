package submit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// await passes the peers' messages to take until each peer has answered. When one peer fails, the
// others get a moment to fail too, so that the next attempt can exclude all of them.
func (u *startup) await(ctx context.Context, doing string, take func(received) error) error {
	last := make(map[*link]time.Time) // time of each peer's last message
	for _, l := range u.peers.links {
		l.progress.answered = false
		last[l], l.progress.at = time.Now(), time.Now()
	}
	var grace <-chan time.Time
	interval := min(u.j.s.waits.silence, u.j.s.waits.disconnected, u.j.replaceAfter()) / 16
	look, looked := time.Tick(interval), time.Now()
	waits := func(l *link) bool { return !l.progress.answered || l.session.disconnected }
	for u.peers.count(waits) > 0 {
		select {
		case h := <-u.peers.inbox.messages:
			if h.late() || !h.back && !h.link.acceptMessage(h) {
				continue
			}
			last[h.link] = time.Now()
			switch {
			case h.back:
				h.err = u.preparedOn(h)
			case h.err == nil:
				h.err = take(h)
			case u.peers.mayReconnect(h.link, h.err):
				u.peers.reconnect(h.link, h.err)
				continue
			}
			if h.err != nil {
				h.link.lose(h.err)
			}
		case <-look:
			gap := time.Since(looked)
			if looked = looked.Add(gap); gap > max(2*interval, reportPeriod) { // this process did not run: messages may lie unread
				for l := range last {
					last[l] = last[l].Add(gap)
				}
				continue
			}
			for _, note := range u.replaceQuiet(last) {
				u.j.warn(note)
			}
			u.loseSilent(last)
		case <-grace:
			return u.peers.fault(doing)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if grace == nil && u.peers.fault(doing) != nil {
			grace = time.After(u.j.s.waits.grace)
		}
	}
	return u.peers.fault(doing)
}

// loseSilent gives up the peers that owe an answer and have been silent, or made no progress, for
// too long. It also gives up those that have been disconnected for too long.
func (u *startup) loseSilent(last map[*link]time.Time) {
	for _, l := range u.peers.links {
		switch {
		case l.session.disconnected && time.Since(l.session.since) > u.j.s.waits.disconnected:
			l.lose(fmt.Errorf("disconnected for %v", u.j.s.waits.disconnected))
		case !l.progress.answered && time.Since(last[l]) > u.j.s.waits.silence:
			l.lose(fmt.Errorf("no message for %v", u.j.s.waits.silence))
		case !l.progress.answered && time.Since(l.progress.at) > u.j.s.waits.progress:
			l.lose(fmt.Errorf("no progress for %v", u.j.s.waits.progress))
		}
	}
}

// replaceQuiet gives up the peers that have been silent for as long as the fault detector would
// wait, if another peer can replace them. If none can, it returns messages to the user.
func (u *startup) replaceQuiet(last map[*link]time.Time) (notes []string) {
	quiet, spare := u.j.replaceAfter(), u.hasSparePeer()
	for _, l := range u.peers.links {
		switch {
		case l.err != nil || l.peer == u.j.s.cfg.Host.ID() || l.progress.answered && !u.peers.reopens || time.Since(last[l]) <= quiet:
		case spare:
			l.lose(fmt.Errorf("no message for %v", quiet))
		case !l.progress.quiet:
			l.progress.quiet = true
			notes = append(notes, fmt.Sprintf("no message from peer %s for %v; waiting for it, since no other peer is known to have free slots", short(l.peer), quiet))
		}
	}
	return notes
}

// hasSparePeer reports whether a known peer could replace one that the job uses.
func (u *startup) hasSparePeer() bool {
	for id, c := range u.j.known.met {
		if c.Slots > 0 && !u.j.known.excluded[id] && u.peers.linkTo(id) == nil {
			return true
		}
	}
	return false
}

// preparedOn continues with a peer whose stream was reopened while it stages. A peer that knows the
// job has received everything that the submitter sent; there is nothing to repeat.
func (u *startup) preparedOn(h received) error {
	u.peers.switchStream(h)
	answer := h.msg.GetResumed()
	if answer == nil {
		return unexpected(h.msg)
	}
	if answer.Error != "" {
		return errors.New(plain(answer.Error))
	}
	return nil
}
