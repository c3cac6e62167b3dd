package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

func main() {
	s := setting{}
	flag.IntVar(&s.peers, "peers", 16, "peers that want the file")
	flag.IntVar(&s.mib, "mib", 64, "size of the file in MiB")
	flag.Float64Var(&s.up, "up", 100, "rate of the origin, in Mbit/s")
	flag.Float64Var(&s.peer, "peer", 1000, "rate of each peer, in Mbit/s, out and in")
	rounds := flag.Int("rounds", 3, "rounds, in each of which every contender runs once")
	limit := flag.Duration("limit", 5*time.Minute, "time for one run")
	flag.Parse()
	if err := run(s, *rounds, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "swarm:", err)
		os.Exit(1)
	}
}

type setting struct {
	peers, mib int
	up, peer   float64
}

// one returns the seconds that the origin needs to send the file once.
func (s setting) one() float64 { return float64(s.mib) * (1 << 20) * 8 / (s.up * 1e6) }

type outcome struct{ times, copies []float64 }

func run(s setting, rounds int, limit time.Duration) error {
	outcomes := make([]outcome, len(contenders))
	for round := range rounds {
		for i, c := range contenders {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			took, sent, err := measure(ctx, s, c)
			cancel()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			o := &outcomes[i]
			o.times = append(o.times, took.Seconds()/s.one())
			o.copies = append(o.copies, float64(sent)/float64(s.mib<<20))
			fmt.Fprintf(os.Stderr, "round %d, %s: %.1f s, %.2f copies sent\n", round+1, c.name, took.Seconds(), o.copies[round])
		}
	}
	fmt.Printf("%d MiB to %d peers, origin at %g Mbit/s, peers at %g Mbit/s; one copy takes %.1f s\n\n", s.mib, s.peers, s.up, s.peer, s.one())
	fmt.Println("| | time / time of one copy | copies that the origin sends |")
	fmt.Println("| --- | --- | --- |")
	for i, c := range contenders {
		fmt.Printf("| %s | %s | %s |\n", c.name, spread(outcomes[i].times), spread(outcomes[i].copies))
	}
	return nil
}

// spread formats the median, the minimum and the maximum.
func spread(x []float64) string {
	slices.Sort(x)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", x[len(x)/2], x[0], x[len(x)-1])
}

// measure runs one transfer on its own hosts.
func measure(ctx context.Context, s setting, c contender) (took time.Duration, sent int64, err error) {
	dir, err := os.MkdirTemp("", "swarm")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	var hosts []*limited
	defer func() {
		for _, h := range hosts {
			_ = h.Close() // the process ends soon
		}
	}()
	for i := range s.peers + 1 {
		rate := s.peer
		if i == 0 {
			rate = s.up
		}
		h, err := newLimited(rate)
		if err != nil {
			return 0, 0, err
		}
		for _, other := range hosts {
			if err := h.Connect(ctx, p2ppeer.AddrInfo{ID: other.ID(), Addrs: other.Addrs()}); err != nil {
				return 0, 0, err
			}
		}
		hosts = append(hosts, h)
	}
	fetch, end, err := c.prepare(ctx, dir, hosts, randomContent(s.mib<<20))
	if err != nil {
		return 0, 0, err
	}
	defer end()
	before, begun := hosts[0].sent.Load(), time.Now()
	err = fetch()
	return time.Since(begun), hosts[0].sent.Load() - before, err
}
