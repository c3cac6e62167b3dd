package networks

import (
	"fmt"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
	"github.com/p2pmpi/p2pmpi/peer/net/membership"
)

// maxInvitation bounds the size of an invitation file, in bytes.
const maxInvitation = 4 << 10

func readInvitation(file string) (*membership.Invitation, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	if info.Size() > maxInvitation {
		return nil, fmt.Errorf("token %s: %d bytes, too long for an invitation", file, info.Size())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	i, err := membership.ParseInvitation(string(text))
	if err != nil {
		return nil, fmt.Errorf("token %s: %w", file, err)
	}
	return i, nil
}

func keepInvitation(folder networkFolder, i *membership.Invitation) error {
	text, err := i.Text()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(folder.token(), []byte(text+"\n")); err != nil {
		return fmt.Errorf("keep the invitation: %w", err)
	}
	return nil
}
