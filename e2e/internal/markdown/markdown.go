package markdown

import (
	"fmt"
	"os"
	"strings"
)

// Table formats a table; the first row is its header.
func Table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		}
	}
	return b.String()
}

// Insert replaces the content of a file between the markers of a section,
//
//	<!-- NAME -->
//	<!-- /NAME -->
//
// by text. It returns an error if the file lacks the markers.
func Insert(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- /%s -->\n", name)
	before, rest, ok := strings.Cut(string(old), begin)
	_, after, too := strings.Cut(rest, end)
	if !ok || !too {
		return fmt.Errorf("%s has no section %s", file, name)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+strings.TrimSpace(text)+"\n\n"+end+after), 0o644)
}
