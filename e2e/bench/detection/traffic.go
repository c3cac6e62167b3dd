package main

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/faultdetect/sim"
)

// traffic returns the table of the traffic that a member sends, as the mean of a few members, on
// open streams. It excludes the overhead of TCP, TLS and the multiplexer, about 90 bytes per
// message.
func traffic(o options) ([][]string, error) {
	rows := [][]string{{"n", "whole tables: B/s", "differences: B/s", "messages/s", "at 5 % loss: B/s", "messages/s", "in the 10 s around a failure: B/s", "messages/s"}}
	for _, n := range sizes(o)[:min(7, len(sizes(o)))] {
		row := []string{fmt.Sprint(n)}
		for _, t := range []struct {
			loss  float64
			crash bool
		}{{}, {loss: 0.05}, {crash: true}} {
			w, err := sim.New(n, faultdetect.Config{Period: period}, o.seed)
			if err != nil {
				return nil, err
			}
			w.RandomPhases()
			w.Loss = t.loss
			turn := time.Duration(2*faultdetect.DBRR.Rounds(n)+1) * period // by then all streams are open and all links are known
			if t.crash {
				w.Crash(n-1, turn+2*period)
			}
			m := meter{streams: map[sim.Pair]*faultdetect.Encoder{}, observers: 4}
			w.Watch = func(msg faultdetect.Message) { m.count(msg, w.Now >= turn) }
			const seconds = 10
			w.Run(turn + seconds*time.Second)
			each := float64(m.observers * seconds)
			if t.loss == 0 && !t.crash {
				row = append(row, fmt.Sprintf("%.0f", float64(m.whole)/each))
			}
			row = append(row, fmt.Sprintf("%.0f", float64(m.bytes)/each), fmt.Sprintf("%.1f", float64(m.messages)/each))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// A meter counts the messages of the first few members.
type meter struct {
	streams   map[sim.Pair]*faultdetect.Encoder
	observers int

	messages, bytes, whole int
}

func (m *meter) count(msg faultdetect.Message, counts bool) {
	if msg.From >= m.observers {
		return
	}
	pair := sim.Pair{Observer: msg.From, Member: msg.To}
	if m.streams[pair] == nil {
		m.streams[pair] = new(faultdetect.Encoder)
	}
	size := m.streams[pair].Size(msg)
	if counts {
		m.messages++
		m.bytes += size
		m.whole += new(faultdetect.Encoder).Size(msg)
	}
}
