package main

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// tokenTag is the tag of the token's messages.
const tokenTag = 1

// pass sends a token around the ring the given number of times. Rank 0 starts with the value 0 and
// has the token again at the end; each rank adds its number when it gets the token. pass returns the
// last value of the token at this rank.
func pass(c *mpj.Comm, rounds int) (int64, error) {
	next, previous := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	token := make([]int64, 1)
	for round := range rounds {
		// Rank 0 sends before it receives, because all ranks would wait if all received first.
		if c.Rank() == 0 {
			if err := mpj.Send(c, token, next, tokenTag); err != nil {
				return 0, fmt.Errorf("round %d: %w", round+1, err)
			}
		}
		if _, err := mpj.Recv(c, token, previous, tokenTag); err != nil {
			return 0, fmt.Errorf("round %d: %w", round+1, err)
		}
		token[0] += int64(c.Rank())
		if c.Rank() != 0 {
			if err := mpj.Send(c, token, next, tokenTag); err != nil {
				return 0, fmt.Errorf("round %d: %w", round+1, err)
			}
		}
	}
	return token[0], nil
}

// expected returns the value of the token after some rounds: each round adds 0 + 1 + ... + ranks-1.
func expected(ranks, rounds int) int64 {
	return int64(rounds) * int64(ranks) * int64(ranks-1) / 2
}
