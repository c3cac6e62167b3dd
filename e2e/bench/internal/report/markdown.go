package report

import (
	"fmt"
	"os"
	"strings"
)

// Insert replaces what stands in a Markdown file between the markers of a section,
//
//	<!-- bench:NAME -->
//	<!-- /bench:NAME -->
//
// by text. It is an error if they are not there.
func Insert(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- bench:%s -->\n", name), fmt.Sprintf("<!-- /bench:%s -->\n", name)
	before, rest, ok := strings.Cut(string(old), begin)
	_, after, too := strings.Cut(rest, end)
	if !ok || !too {
		return fmt.Errorf("%s has no section %s", file, name)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+strings.TrimSpace(text)+"\n\n"+end+after), 0o644)
}
