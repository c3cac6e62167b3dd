// Package markdown writes tables, and puts what commands compute into the
// sections of documents that are theirs.
package markdown
