// Package traffic defines the messages in each round of the program traffic (e2e/programs/traffic), and the
// output of the ranks. Everything follows from a seed. Every rank therefore knows the messages that should
// arrive, and a test can compute the output without sending any.
package traffic

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// A Message is one message of a round.
type Message struct {
	From, To, Tag int
	seed          uint64
	bytes         int
}

// Round returns the messages of a round between n ranks, in the order in which each rank sends its
// own: up to 2n messages of up to most bytes. Short messages are as frequent as long ones.
func Round(seed uint64, round, n, most int) []Message {
	random := rand.New(rand.NewPCG(seed, uint64(round)))
	messages := make([]Message, random.IntN(2*n)+1)
	for i := range messages {
		limit := min(most, 1<<random.IntN(24))
		messages[i] = Message{From: random.IntN(n), To: random.IntN(n), Tag: random.IntN(4), seed: random.Uint64(), bytes: random.IntN(limit + 1)}
	}
	return messages
}

// Payload returns the payload of a message.
func (m Message) Payload() []byte {
	b := make([]byte, m.bytes)
	x := m.seed
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x >> 56)
	}
	return b
}

// Mix returns the checksum after adding a payload to sum.
func Mix(sum uint64, payload []byte) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%016x", sum)
	h.Write(payload)
	return h.Sum64()
}

// Line is the line that a rank prints after a number of rounds, with the checksum of all received
// payloads.
func Line(rank, rounds int, sum uint64) string {
	return fmt.Sprintf("rank %d rounds %d checksum %016x", rank, rounds, sum)
}

// Output returns the output of n ranks: a line of each rank after each group of every rounds.
func Output(seed uint64, rounds, every, n, most int) []string {
	var lines []string
	sums := make([]uint64, n)
	for round := range rounds {
		for _, m := range Round(seed, round, n, most) {
			sums[m.To] = Mix(sums[m.To], m.Payload())
		}
		if (round+1)%every == 0 {
			for rank, sum := range sums {
				lines = append(lines, Line(rank, round+1, sum))
			}
		}
	}
	return lines
}
