package replication

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

var states = flag.Int("states", defaultStates, "maximum number of states to explore in each scenario")

// Calls of the scenarios' programs.
func send(rank int) op          { return op{kind: opSend, context: named, rank: rank} }
func sendWild(rank int) op      { return op{kind: opSend, context: wild, rank: rank} }
func recv(rank int) op          { return op{kind: opRecv, context: named, rank: rank} }
func recvAny(index uint64) op   { return op{kind: opRecvAny, context: wild, index: index} }
func drawPoint(index uint64) op { return op{kind: opDraw, index: index} }
func drawWild(index uint64) op  { return op{kind: opDraw, context: wild, index: index} }

var checkpointed = op{kind: opCheckpoint}

var (
	// The replicas of rank 0 agree on a number and send it to rank 1.
	oneWay = [][]op{{drawPoint(0), send(1)}, {recv(0)}}
	// Two messages. The later one must not be dropped before the earlier one.
	stream2 = [][]op{{send(1), send(1)}, {recv(0), recv(0)}}
	// As in a collective, each of two ranks sends to the other and waits.
	exchange = [][]op{{send(1), recv(1)}, {send(0), recv(0)}}
	// Rank 1 receives messages of rank 0 and of itself in any order, and reports the order.
	wildcard = [][]op{{sendWild(1), recv(1)}, {sendWild(1), recvAny(0), recvAny(1), send(0)}}
	// Two consecutive decisions, and a message that depends on them.
	decisions2 = [][]op{{drawPoint(0), drawPoint(1), send(1)}, {recv(0)}}
	// One rank sends or receives messages before and after its second checkpoint.
	sends2    = [][]op{{checkpointed, send(1), checkpointed, send(1)}, {recv(0), recv(0)}}
	receives2 = [][]op{{send(1), send(1)}, {checkpointed, recv(0), checkpointed, recv(0)}}
	exchanges = [][]op{{checkpointed, send(1), recv(1), checkpointed, send(1)}, {send(0), checkpointed, recv(0), recv(0)}}
	// At a checkpoint, a message has arrived but was not received.
	toItself = [][]op{{checkpointed, sendWild(0), send(0), checkpointed, recv(0), recvAny(0)}}
	// A decision between two checkpoints.
	checkpoints2 = [][]op{{checkpointed, drawPoint(0), checkpointed}}
	// A decision before each checkpoint, and one after.
	checkpoints3 = [][]op{{drawPoint(0), checkpointed, drawPoint(1), checkpointed, drawPoint(2)}}
	// Two decisions in different contexts, and a message that depends on them.
	contexts2 = [][]op{{drawPoint(0), drawWild(1), send(1)}, {recv(0)}}
	// Three decisions in two contexts, and nothing else.
	contexts3 = [][]op{{drawPoint(0), drawWild(1), drawPoint(2)}}
	// Two decisions and nothing else.
	alone = [][]op{{drawPoint(0), drawPoint(1)}}
)

// half lists the processes on one side of a partition: the first masters.
var half = []view.Process{{Rank: 0, Replica: 0}, {Rank: 1, Replica: 0}}

var scenarios = []scenario{
	{name: "stream", n: 2, r: 2, scripts: stream2},
	{name: "exchange", n: 2, r: 2, scripts: exchange},
	{name: "wildcard", n: 2, r: 2, scripts: wildcard},
	{name: "stream, a crash", n: 2, r: 2, scripts: stream2, allowed: faults{crashes: 1}},
	{name: "stream, two crashes", n: 2, r: 2, scripts: stream2, allowed: faults{crashes: 2}},
	{name: "exchange, a crash", n: 2, r: 2, scripts: exchange, allowed: faults{crashes: 1}},
	{name: "wildcard, a crash", n: 2, r: 2, scripts: wildcard, allowed: faults{crashes: 1}},
	{name: "wildcard, a false suspicion", n: 2, r: 2, scripts: wildcard, allowed: faults{suspicions: 1}},
	{name: "decisions, r=3", n: 2, r: 3, scripts: decisions2},
	{name: "decisions, r=3, two crashes", n: 2, r: 3, scripts: oneWay, allowed: faults{crashes: 2}},
	{name: "decisions, n=1, r=3, a crash, channel lost", n: 1, r: 3, scripts: alone, allowed: faults{crashes: 1, resets: 1}},
	{name: "decisions, n=1, r=3, two crashes, a false suspicion", n: 1, r: 3, scripts: alone, allowed: faults{crashes: 2, suspicions: 1}},
	{name: "partition", n: 2, r: 2, scripts: oneWay, allowed: faults{partitions: 2}, side: half},
	{name: "stream, channel lost", n: 2, r: 2, scripts: stream2, allowed: faults{resets: 1}},
	{name: "decisions, channel lost", n: 2, r: 2, scripts: decisions2, allowed: faults{resets: 1}},
	{name: "exchange, exits", n: 2, r: 2, scripts: exchange, exits: true},
	{name: "decisions, a crash", n: 2, r: 2, scripts: decisions2, allowed: faults{crashes: 1}},
	{name: "decisions, r=3, a crash, channel lost", n: 2, r: 3, scripts: oneWay, allowed: faults{crashes: 1, resets: 1}},
	{name: "stream, a join", n: 2, r: 1, scripts: stream2, allowed: faults{joins: 1}},
	{name: "exchange, a join and a crash", n: 2, r: 1, scripts: exchange, allowed: faults{joins: 1, crashes: 1}},
	{name: "decisions, n=1, a join and a crash", n: 1, r: 1, scripts: alone, allowed: faults{joins: 1, crashes: 1}},
	{name: "decisions, n=1, a join, a false suspicion", n: 1, r: 2, scripts: alone, allowed: faults{joins: 1, suspicions: 1}},
	{name: "decisions, n=1, a join, two crashes", n: 1, r: 2, scripts: alone, allowed: faults{joins: 1, crashes: 2}},
	{name: "decisions, n=1, r=3, a join, two crashes", n: 1, r: 3, scripts: alone, allowed: faults{joins: 1, crashes: 2}, piece: 10},
	{name: "stream, a join, a crash, channel lost", n: 2, r: 1, scripts: stream2, allowed: faults{joins: 1, crashes: 1, resets: 1}},
	{name: "wildcard, a join and a crash", n: 2, r: 1, scripts: wildcard, allowed: faults{joins: 1, crashes: 1}},
	{name: "exchange, two joins", n: 2, r: 1, scripts: exchange, allowed: faults{joins: 2}},
	{name: "stream, a join, exits", n: 2, r: 1, scripts: stream2, allowed: faults{joins: 1}, exits: true},
	{name: "stream, a promotion", n: 2, r: 2, scripts: stream2, allowed: faults{promotions: 1}},
	{name: "wildcard, two promotions", n: 2, r: 2, scripts: wildcard, allowed: faults{promotions: 2}},
	{name: "decisions, n=1, r=3, two promotions", n: 1, r: 3, scripts: alone, allowed: faults{promotions: 2}},
	{name: "decisions, n=1, r=3, a promotion, a crash", n: 1, r: 3, scripts: alone, allowed: faults{promotions: 1, crashes: 1}},
	{name: "decisions, n=1, r=2, three promotions, channel lost", n: 1, r: 2, scripts: alone, allowed: faults{promotions: 3, resets: 1}},
	{name: "decisions, two promotions", n: 2, r: 2, scripts: decisions2, allowed: faults{promotions: 2}},
	{name: "decisions, n=1, a join, two promotions", n: 1, r: 1, scripts: alone, allowed: faults{joins: 1, promotions: 2}},
	{name: "decisions, n=1, r=2, a join, a promotion, a crash", n: 1, r: 2, scripts: alone, allowed: faults{joins: 1, promotions: 1, crashes: 1}},
	{name: "exchange, a join, two promotions", n: 2, r: 1, scripts: exchange, allowed: faults{joins: 1, promotions: 2}},
	{name: "a decision, r=3, two promotions, a crash", n: 1, r: 3, scripts: [][]op{{drawPoint(0)}}, allowed: faults{promotions: 2, crashes: 1}},
	{name: "stream, a promotion, channel lost", n: 2, r: 2, scripts: stream2, allowed: faults{promotions: 1, resets: 1}},
	{name: "checkpoints, sends, a join and a crash", n: 2, r: 1, scripts: sends2, allowed: faults{joins: 1, crashes: 1}},
	{name: "checkpoints, receives, a join in pieces and a crash", n: 2, r: 1, scripts: receives2, allowed: faults{joins: 1, crashes: 1}, piece: 40},
	{name: "checkpoints, exchanges, a join", n: 2, r: 1, scripts: exchanges, allowed: faults{joins: 1}},
	{name: "checkpoints, sends, a join, a crash, channel lost", n: 2, r: 1, scripts: sends2, allowed: faults{joins: 1, crashes: 1, resets: 1}},
	{name: "checkpoints, to itself, a join and a crash", n: 1, r: 1, scripts: toItself, allowed: faults{joins: 1, crashes: 1}},
	{name: "checkpoints, n=1, a join and a crash", n: 1, r: 1, scripts: checkpoints3, allowed: faults{joins: 1, crashes: 1}, piece: 30},
	{name: "checkpoints, n=1, a join, a crash, channel lost", n: 1, r: 1, scripts: checkpoints3, allowed: faults{joins: 1, crashes: 1, resets: 1}},
	{name: "checkpoints, n=1, a join, channel lost twice", n: 1, r: 1, scripts: checkpoints3, allowed: faults{joins: 1, resets: 2}},
	{name: "checkpoints, n=1, r=3, a join in pieces, two crashes", n: 1, r: 3, scripts: checkpoints2, allowed: faults{joins: 1, crashes: 2}, piece: 30},
	{name: "checkpoints, n=1, a join, a promotion, a crash", n: 1, r: 2, scripts: checkpoints3, allowed: faults{joins: 1, promotions: 1, crashes: 1}},
	{name: "decisions on two communicators, a crash", n: 2, r: 2, scripts: contexts2, allowed: faults{crashes: 1}},
	{name: "decisions on two communicators, n=1, r=3, two crashes", n: 1, r: 3, scripts: contexts3, allowed: faults{crashes: 2}},
	{name: "decisions on two communicators, n=1, a join, a crash, a promotion", n: 1, r: 2, scripts: contexts3,
		allowed: faults{joins: 1, crashes: 1, promotions: 1}},
	{name: "wildcard, two crashes", n: 2, r: 2, scripts: wildcard, allowed: faults{crashes: 2}},
	{name: "exchange, two crashes", n: 2, r: 2, scripts: exchange, allowed: faults{crashes: 2}},
	{name: "exchange, a false suspicion", n: 2, r: 2, scripts: exchange, allowed: faults{suspicions: 1}},
	{name: "wildcard, partition", n: 2, r: 2, scripts: wildcard, allowed: faults{partitions: 2}, side: half},
	{name: "exchange, partition", n: 2, r: 2, scripts: exchange, allowed: faults{partitions: 2}, side: half},
	{name: "wildcard, r=3, two crashes", n: 2, r: 3, scripts: wildcard, allowed: faults{crashes: 2}},
	{name: "exchange, r=3, two crashes", n: 2, r: 3, scripts: exchange, allowed: faults{crashes: 2}},
	{name: "wildcard, r=3, a false suspicion", n: 2, r: 3, scripts: wildcard, allowed: faults{suspicions: 1}},
	{name: "exchange, r=3, a false suspicion", n: 2, r: 3, scripts: exchange, allowed: faults{suspicions: 1}},
	{name: "wildcard, r=3, partition", n: 2, r: 3, scripts: wildcard, allowed: faults{partitions: 2}, side: half},
	{name: "wildcard, r=3, two crashes, a false suspicion, partition", n: 2, r: 3, scripts: wildcard,
		allowed: faults{crashes: 2, suspicions: 1, partitions: 2}, side: half},
	{name: "exchange, r=3, two crashes, a false suspicion, partition", n: 2, r: 3, scripts: exchange,
		allowed: faults{crashes: 2, suspicions: 1, partitions: 2}, side: half},
	{name: "decisions, n=1, aside", n: 1, r: 2, scripts: alone, allowed: faults{asides: 1}},
	{name: "decisions, n=1, aside, frame lost", n: 1, r: 2, scripts: alone, allowed: faults{asides: 1, tears: 1}},
	{name: "decisions, n=1, aside twice, channel lost", n: 1, r: 2, scripts: alone, allowed: faults{asides: 2, resets: 1}},
	{name: "decisions, n=1, aside, a crash that may lose the rank", n: 1, r: 2, scripts: alone,
		allowed: faults{asides: 1, crashes: 1}, loses: true},
	{name: "decisions, n=1, aside, two promotions", n: 1, r: 2, scripts: alone, allowed: faults{asides: 1, promotions: 2}},
	{name: "a decision, n=1, r=3, aside, a promotion", n: 1, r: 3, scripts: [][]op{{drawPoint(0)}}, allowed: faults{asides: 1, promotions: 1}},
	{name: "decisions, n=1, aside, a join, a crash", n: 1, r: 2, scripts: alone, allowed: faults{asides: 1, joins: 1, crashes: 1}},
	{name: "decisions, n=1, r=3, aside, a crash", n: 1, r: 3, scripts: alone, allowed: faults{asides: 1, crashes: 1}},
	{name: "decisions, n=1, r=3, aside, a crash, channel lost", n: 1, r: 3, scripts: alone, allowed: faults{asides: 1, crashes: 1, resets: 1}},
	{name: "a decision, n=1, r=3, aside twice, two crashes", n: 1, r: 3, scripts: [][]op{{drawPoint(0)}}, allowed: faults{asides: 2, crashes: 2}, loses: true},
	{name: "a decision, n=1, aside, a join, two crashes that may lose the rank", n: 1, r: 2, scripts: [][]op{{drawPoint(0)}},
		allowed: faults{asides: 1, joins: 1, crashes: 2}, loses: true},
	{name: "checkpoints, n=1, aside, a join, a crash that may lose the rank", n: 1, r: 2, scripts: checkpoints2,
		allowed: faults{asides: 1, joins: 1, crashes: 1}, loses: true},
	{name: "wildcard, aside, a crash that may lose a rank", n: 2, r: 2, scripts: wildcard, allowed: faults{asides: 1, crashes: 1}, loses: true},
	{name: "decisions, n=1, r=3, aside twice, a false suspicion", n: 1, r: 3, scripts: alone, allowed: faults{asides: 2, suspicions: 1}},
	{name: "decisions, aside, a crash", n: 2, r: 2, scripts: decisions2, allowed: faults{asides: 1, crashes: 1}, loses: true},
	{name: "wildcard, aside, exits", n: 2, r: 2, scripts: wildcard, allowed: faults{asides: 1}, exits: true},
	{name: "stream, frame lost", n: 2, r: 2, scripts: stream2, allowed: faults{tears: 1}},
}

// TestEveryInterleaving checks R1 to R5 and V1 in every reachable state of a small job: every order of calls,
// arrivals, ticks, views and faults. A scenario that is too large for -states is explored breadth first, complete
// up to a certain number of events, and from there at random to its end.
//
// Three kinds of equivalent events are not distinguished. A frame that is lost with its sender is equivalent to a
// frame that has not arrived yet, because the job continues without it. A frame that was sent on a broken channel
// before the sender learned of the break is equivalent to a frame that was lost at that moment. A call that only
// takes messages that have arrived may happen now or a little later.
func TestEveryInterleaving(t *testing.T) {
	base := *seed
	if base == 0 {
		base = rand.Uint64()
	}
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			r := explore(sc, skip.Fewer(*states, 2000), base)
			if r.broken != nil {
				t.Fatal(r.failure())
			}
			t.Logf("%s: %v", sc.name, r)
		})
	}
}
