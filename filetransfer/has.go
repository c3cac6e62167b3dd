package filetransfer

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/rs/zerolog"
)

// cachedProtocol carries one question and its answer. The question is a byte with the number of digests,
// and the digests. The answer is one byte per digest: 1 if its content is complete.
const cachedProtocol protocol.ID = "/p2pmpi/cached/1.0.0"

// MaxAsked bounds the digests in one question.
const MaxAsked = 64

// cachedTimeout bounds a question on either side.
const cachedTimeout = 5 * time.Second

// cacheQueries asks other peers which contents are in their stores, and answers them.
type cacheQueries struct {
	host  host.Host
	store *Store
	log   zerolog.Logger
}

// Tell makes the service answer peers that ask which contents are in its store, until stop is called. It
// answers only peers that admits accepts, because the answer tells a peer that knows a digest whether the
// file was used here.
func (q *cacheQueries) Tell(admits func(p2ppeer.ID) bool) (stop func()) {
	q.host.SetStreamHandler(cachedProtocol, func(st network.Stream) {
		if !admits(st.Conn().RemotePeer()) {
			st.Reset()
			return
		}
		st.SetDeadline(time.Now().Add(cachedTimeout))
		digests, err := readQuestion(st)
		if err == nil {
			_, err = st.Write(q.present(digests))
		}
		if err != nil {
			q.log.Debug().Err(err).Stringer("peer", st.Conn().RemotePeer()).Msg("question for cached files")
			st.Reset()
			return
		}
		st.Close()
	})
	return func() { q.host.RemoveStreamHandler(cachedProtocol) }
}

// present returns one byte per digest: 1 if its content is in the store.
func (q *cacheQueries) present(digests []Digest) []byte {
	out := make([]byte, len(digests))
	for i, d := range digests {
		if q.store.Has(d) {
			out[i] = 1
		}
	}
	return out
}

// Cached asks a peer which of up to MaxAsked contents it has. The answer is a hint: contents may be
// evicted at any time.
func (q *cacheQueries) Cached(ctx context.Context, peer p2ppeer.ID, digests []Digest) ([]bool, error) {
	if len(digests) > MaxAsked {
		return nil, fmt.Errorf("query %s for %d digests: at most %d are allowed", peer, len(digests), MaxAsked)
	}
	answer := q.present(digests)
	if peer != q.host.ID() {
		var err error
		if answer, err = q.askCached(ctx, peer, digests); err != nil {
			return nil, fmt.Errorf("query the cache of %s: %w", peer, err)
		}
	}
	out := make([]bool, len(answer))
	for i, b := range answer {
		out[i] = b == 1
	}
	return out, nil
}

func (q *cacheQueries) askCached(ctx context.Context, peer p2ppeer.ID, digests []Digest) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cachedTimeout)
	defer cancel()
	st, err := q.host.NewStream(network.WithAllowLimitedConn(ctx, "cached"), peer, cachedProtocol)
	if err != nil {
		return nil, err
	}
	defer st.Reset() // no effect after the answer
	defer context.AfterFunc(ctx, func() { st.SetDeadline(time.Unix(1, 0)) })()
	question := []byte{byte(len(digests))}
	for _, d := range digests {
		question = append(question, d[:]...)
	}
	if _, err := st.Write(question); err != nil {
		return nil, err
	}
	answer := make([]byte, len(digests))
	_, err = io.ReadFull(st, answer)
	return answer, err
}

func readQuestion(r io.Reader) ([]Digest, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	if n[0] > MaxAsked {
		return nil, fmt.Errorf("query for %d digests, at most %d are allowed", n[0], MaxAsked)
	}
	digests := make([]Digest, n[0])
	for i := range digests {
		if _, err := io.ReadFull(r, digests[i][:]); err != nil {
			return nil, err
		}
	}
	return digests, nil
}
