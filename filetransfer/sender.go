package filetransfer

import (
	"bufio"
	"errors"
	"io"
	"os"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
)

// A sender answers the requests of one link.
type sender struct {
	svc    *Service
	remote p2ppeer.ID
	link   link
	w      *bufio.Writer
	msgs   pbio.Writer
	buf    []byte // of maxChunk once something is sent: strangers cost little
}

func (sd *sender) run() error {
	queue := make(chan request, window)
	broken := make(chan error, 1)
	// Ends when the link does: by the asking peer, or by the Reset below.
	go func() {
		defer close(queue)
		broken <- sd.readRequests(queue)
	}()
	err := sd.answer(queue)
	if err != nil {
		_ = sd.link.Reset() // err is the one to report
		<-broken
		return err
	}
	if err := <-broken; err != nil {
		_ = sd.link.Reset()
		return err
	}
	return sd.link.Close()
}

// readRequests reads ahead, so that the asking peer never waits for room while
// this one waits for it to read. A peer that asks beyond the window is cut.
func (sd *sender) readRequests(queue chan<- request) error {
	r := pbio.NewDelimitedReader(sd.link, maxRequest)
	for {
		var msg pb.Request
		if err := r.ReadMsg(&msg); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		rs, err := decodeRequest(&msg)
		if err != nil {
			return err
		}
		for _, q := range rs {
			select {
			case queue <- q:
			default:
				return errors.New("more requests ahead than the protocol allows")
			}
		}
	}
}

// answer sends contents in the order of the queue, until the asking peer has
// closed its end.
func (sd *sender) answer(queue <-chan request) error {
	idle := time.NewTimer(sd.svc.stall)
	defer idle.Stop()
	for {
		if len(queue) == 0 {
			if err := sd.flush(); err != nil {
				return err
			}
		}
		idle.Reset(sd.svc.stall)
		select {
		case q, ok := <-queue:
			if !ok {
				return nil
			}
			if err := sd.send(q); err != nil {
				return err
			}
		case <-idle.C:
			return errors.New("nothing was asked for, for too long")
		}
	}
}

// send answers one request. Its error means that the link is broken; that the
// file is not to be had is an answer.
func (sd *sender) send(q request) error {
	f, done, ok := sd.svc.lookup(sd.remote, q)
	if !ok {
		return sd.refuse(q, pb.Refusal_REFUSAL_UNKNOWN, nil)
	}
	if sd.buf == nil {
		sd.buf = make([]byte, maxChunk)
	}
	file, info, err := openRegular(f.path)
	if err != nil {
		return sd.refuse(q, pb.Refusal_REFUSAL_UNREADABLE, err)
	}
	defer file.Close()
	if info.Size() != f.size || !info.ModTime().Equal(f.modTime) || q.offset > f.size {
		return sd.refuse(q, pb.Refusal_REFUSAL_CHANGED, nil)
	}
	if _, err := file.Seek(q.offset, io.SeekStart); err != nil {
		return sd.refuse(q, pb.Refusal_REFUSAL_UNREADABLE, err)
	}
	for left := f.size - q.offset; ; {
		b := sd.buf[:min(left, maxChunk)]
		if refusal, err := readServed(file, f, b, done); refusal != pb.Refusal_REFUSAL_NONE {
			return sd.refuse(q, refusal, err)
		}
		left -= int64(len(b))
		if err := sd.chunk(b, left == 0); err != nil || left == 0 {
			return err
		}
	}
}

// readServed fills b from the file, and looks once more whether the file is
// what it was: what has been read is of the old content then.
func readServed(file *os.File, f served, b []byte, done <-chan struct{}) (pb.Refusal, error) {
	select {
	case <-done:
		return pb.Refusal_REFUSAL_UNKNOWN, nil
	default:
	}
	if _, err := io.ReadFull(file, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return pb.Refusal_REFUSAL_CHANGED, err
		}
		return pb.Refusal_REFUSAL_UNREADABLE, err
	}
	info, err := file.Stat()
	if err != nil {
		return pb.Refusal_REFUSAL_UNREADABLE, err
	}
	if info.Size() != f.size || !info.ModTime().Equal(f.modTime) {
		return pb.Refusal_REFUSAL_CHANGED, nil
	}
	return pb.Refusal_REFUSAL_NONE, nil
}

func (sd *sender) chunk(b []byte, last bool) error {
	if err := sd.link.SetWriteDeadline(time.Now().Add(sd.svc.stall)); err != nil {
		return err
	}
	if err := sd.msgs.WriteMsg(&pb.Chunk{Length: uint32(len(b)), Last: last}); err != nil {
		return err
	}
	if _, err := sd.w.Write(b); err != nil {
		return err
	}
	sd.svc.bytesSent.Add(int64(len(b)))
	if last {
		sd.svc.filesSent.Add(1)
	}
	return nil
}

// refuse answers that the content is not to be had. The owner of a file that
// went bad should see it; that somebody asked in vain is nothing to report.
func (sd *sender) refuse(q request, why pb.Refusal, cause error) error {
	level := zerolog.WarnLevel
	if why == pb.Refusal_REFUSAL_UNKNOWN {
		level = zerolog.DebugLevel
	}
	sd.svc.log.WithLevel(level).Err(cause).Stringer("peer", sd.remote).Str("job", q.job).
		Stringer("digest", q.digest).Stringer("refusal", why).Msg("content refused")
	return sd.msgs.WriteMsg(&pb.Chunk{Refusal: why})
}

func (sd *sender) flush() error {
	if err := sd.link.SetWriteDeadline(time.Now().Add(sd.svc.stall)); err != nil {
		return err
	}
	return sd.w.Flush()
}
