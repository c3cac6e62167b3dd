package nemesis

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestEndingsAreJudged(t *testing.T) {
	wrong := errors.New("wrong answer")
	const (
		rank1   = `{"text":"rank 1 lost all its replicas: 1.0 was killed"}`
		nothing = "nothing of job 12 is left at its peers"
		noJob   = "no resumable job in home /tmp/a"
	)
	for name, c := range map[string]struct {
		ending Ending
		want   Verdict
	}{
		"the right answer":                           {Ending{}, RightAnswer},
		"another answer":                             {Ending{Answer: wrong}, WrongAnswer},
		"another answer, with reasons to fail":       {Ending{Answer: wrong, Exposed: []int{1}, Severed: true, Said: rank1}, WrongAnswer},
		"a rank lost":                                {Ending{Status: 70, Exposed: []int{0, 1}, Said: rank1, Answer: wrong}, RankLost},
		"a rank lost without a fault":                {Ending{Status: 70, Said: rank1}, WrongStatus},
		"another rank lost":                          {Ending{Status: 70, Exposed: []int{0}, Said: rank1}, WrongStatus},
		"a rank lost, not reported":                  {Ending{Status: 70, Exposed: []int{1}}, WrongStatus},
		"cut off":                                    {Ending{Status: 70, Severed: true, Said: noMajority}, CutOff},
		"cut off, knows of one rank":                 {Ending{Status: 70, Severed: true, Said: rank1}, CutOff},
		"cut off, no files":                          {Ending{Status: 70, Severed: true, Said: "files could not be collected"}, CutOff},
		"cut off, not reported":                      {Ending{Status: 70, Severed: true}, WrongStatus},
		"reported as cut off":                        {Ending{Status: 70, Said: noMajority}, WrongStatus},
		"diverged, and the liar is named":            {Ending{Status: 65, Liar: "…ab", Said: "replica 1 on peer …ab has"}, LiarNamed},
		"diverged, and the liar is not named":        {Ending{Status: 65, Liar: "…ab", Said: "replica 1 on peer …cd has"}, WrongStatus},
		"diverged, and no peer lies":                 {Ending{Status: 65, Said: "replica 1 on peer …ab has"}, WrongStatus},
		"a lie in the answer":                        {Ending{Answer: wrong, Liar: "…ab", Said: "…ab"}, WrongAnswer},
		"no majority":                                {Ending{Status: 70, Outvoted: true, Said: noMajority}, NoMajority},
		"no majority, not reported":                  {Ending{Status: 70, Outvoted: true, Said: rank1}, WrongStatus},
		"the program's own status":                   {Ending{Status: 1, Exposed: []int{1}, Severed: true, Outvoted: true, Said: rank1 + noMajority}, WrongStatus},
		"takes too long":                             {Ending{Status: 75}, Hang},
		"takes too long, with reasons":               {Ending{Status: 75, Exposed: []int{1}, Severed: true, Said: rank1}, Hang},
		"killed by its timeout":                      {Ending{Status: -1}, Hang},
		"resumed":                                    {Ending{Resumed: true, Kept: true}, RightAnswer},
		"resumed, another answer":                    {Ending{Resumed: true, Kept: true, Answer: wrong}, WrongAnswer},
		"resumed before it was kept":                 {Ending{Resumed: true}, RightAnswer},
		"resumed, a rank lost":                       {Ending{Status: 70, Resumed: true, Kept: true, Exposed: []int{1}, Said: rank1}, RankLost},
		"resumed, wrong status":                      {Ending{Status: 1, Resumed: true, Kept: true}, WrongStatus},
		"resumed, follower exists":                   {Ending{Status: 64, Resumed: true, Said: "another process follows it"}, WrongStatus},
		"resumed, takes too long":                    {Ending{Status: 75, Resumed: true, Kept: true}, Hang},
		"resumed, and p2prun does not end":           {Ending{Status: -1, Resumed: true, Kept: true}, Hang},
		"killed early, nothing is left":              {Ending{Status: 70, Resumed: true, Said: nothing}, KilledEarly},
		"killed early, no job":                       {Ending{Status: 64, Resumed: true, Said: noJob}, KilledEarly},
		"killed early, cancelled":                    {Ending{Status: 64, Resumed: true, Said: "job 12: the job is about to end"}, KilledEarly},
		"resident killed early":                      {Ending{Status: 69, Resumed: true, Said: "the peer on home /a ended before the job did"}, KilledEarly},
		"resident killed, the job was kept":          {Ending{Status: 69, Resumed: true, Kept: true, Said: "the peer on home /a ended before the job did"}, WrongStatus},
		"resident ends by itself":                    {Ending{Status: 69, Said: "the peer on home /a ended before the job did"}, WrongStatus},
		"no peers":                                   {Ending{Status: 69, Resumed: true, Said: "not enough peers"}, WrongStatus},
		"kept, and nothing is left":                  {Ending{Status: 70, Resumed: true, Kept: true, Said: nothing}, WrongStatus},
		"kept, and no job":                           {Ending{Status: 64, Resumed: true, Kept: true, Said: noJob}, WrongStatus},
		"kept and over, no job":                      {Ending{Status: 64, Resumed: true, Kept: true, Over: true, Said: noJob}, KilledTooLate},
		"kept and over, no job, another answer":      {Ending{Status: 64, Resumed: true, Kept: true, Over: true, Said: noJob, Answer: wrong}, WrongStatus},
		"nothing is left, but p2prun was not killed": {Ending{Status: 70, Said: nothing}, WrongStatus},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.ending.Judge(); got != c.want {
				t.Errorf("%+v is judged %q, want %q", c.ending, got, c.want)
			}
		})
	}
}

func TestOnlyWrongsAreWrong(t *testing.T) {
	for _, v := range []Verdict{RightAnswer, RankLost, CutOff, NoMajority, KilledEarly, KilledTooLate} {
		if v.Wrong() {
			t.Errorf("the verdict %q counts as wrong", v)
		}
	}
	for _, v := range []Verdict{WrongAnswer, WrongStatus, Hang, LiveFailed, Leftovers} {
		if !v.Wrong() {
			t.Errorf("the verdict %q counts as right", v)
		}
	}
}

func TestWatched(t *testing.T) {
	for _, c := range []struct {
		ending Ending
		want   bool
	}{
		{Ending{}, true},
		{Ending{Status: 70, Exposed: []int{1}}, true},
		{Ending{Severed: true}, true},
		{Ending{Severed: true, Status: 70}, false},
		{Ending{Outvoted: true}, false},
		{Ending{Resumed: true}, true},
		{Ending{Resumed: true, Status: 70, Said: "nothing of job 12 is left"}, false},
	} {
		if got := c.ending.Watched(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.ending, got, c.want)
		}
	}
}

func TestUnprovokedFailures(t *testing.T) {
	before, after, never := Process{0, 0}, Process{0, 1}, Process{1, 0}
	harmed := map[Process]time.Duration{before: time.Second, after: 3 * time.Second, {1, 1}: 0}
	failures := []Failure{
		{Process: before, At: 2 * time.Second}, {Process: after, At: 2 * time.Second}, {Process: never, At: 2 * time.Second},
	}
	if got := Unprovoked(failures, harmed); !reflect.DeepEqual(got, failures[1:]) {
		t.Errorf("the unprovoked failures are %v, want %v", got, failures[1:])
	}
}
