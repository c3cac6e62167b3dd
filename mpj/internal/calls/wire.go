package calls

import (
	"encoding/json"
	"fmt"
)

// largest bounds in bytes what a rank may say: Alltoallv among thousands of
// ranks has two lists of a part for each.
const largest = 1 << 20

// Encode returns c as it travels.
func Encode(c Call) ([]byte, error) { return json.Marshal(c) }

// Decode is Encode backwards. b may be anything.
func Decode(b []byte) (c Call, err error) {
	if len(b) > largest {
		return c, fmt.Errorf("a call of %d bytes, at most %d are taken", len(b), largest)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("decode a call: %w", err)
	}
	return c, nil
}

// EncodeDifference returns d as it travels.
func EncodeDifference(d Difference) ([]byte, error) { return json.Marshal(d) }

// DecodeDifference is EncodeDifference backwards. b may be anything.
func DecodeDifference(b []byte) (d Difference, err error) {
	if len(b) > largest {
		return d, fmt.Errorf("a difference of %d bytes, at most %d are taken", len(b), largest)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("decode a difference: %w", err)
	}
	return d, nil
}
