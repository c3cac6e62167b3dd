// Package markdown formats tables, and replaces generated sections of documents.
package markdown
